"""How many instances are worth the price of their places, and how many hosts hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np

from include.controllers.tide.estimates import Array, Load
from include.controllers.tide.loss import Gains, Loss
from include.model.host import HostFlavor
from include.model.topology import Operator


def places_of(flavor: HostFlavor, operators: Sequence[Operator]) -> float:
    """Instances of medium memory that a host holds."""
    mean_mb = sum(op.memory_mb for op in operators) / len(operators)
    return max(1.0, flavor.capacity.memory_mb // mean_mb)


def mean_busy(load: Load, backlog_s: float) -> Array:
    """Instances that the mean load keeps busy, and what waits, within ``backlog_s``."""
    return (load.mean_per_s + load.waiting / backlog_s) * load.service_s


def wanted(loss: Loss, place_per_s: float, backlog_s: float) -> Array:
    """Instances of every operator that are worth a place, which costs ``place_per_s``.

    Every operator has at least one. Where an instance completes at least as many items per second
    as a place costs, there are as many as are busy now, and more while another one saves more than
    its place; of several rates as many as the lowest keeps busy, and more while one is expected
    to. Where items are longer it does not pay to lease hosts for a peak: there it is what the mean
    load keeps busy, and what waits, within ``backlog_s``.
    """
    load = loss.load
    dear = load.service_s * place_per_s <= 1
    instances = np.maximum(1.0, np.rint(mean_busy(load, backlog_s)))
    rate_per_s = np.atleast_2d(load.rate_per_s).min(axis=0)
    least = np.atleast_2d(loss.busy).min(axis=0)
    busy = np.maximum(1.0, np.ceil(least))
    # Of hundreds of instances so many are hindered that the next few alone would save nothing.
    many = loss.hindered(busy) > 1
    best = least + np.sqrt(rate_per_s * loss.hindered(least) / place_per_s)
    instances[dear] = np.where(many, np.maximum(busy, np.floor(best)), busy)[dear]
    gains = Gains(loss, instances, none=~dear)
    while gains.now[row := gains.best()] > place_per_s:
        gains.add(row)
    return instances


def hosts_for_work(busy: Array, vcpus: float) -> int:
    """Hosts for so many instances that are busy on average, where they share the CPU.

    There an instance that works takes a core, whatever it reserves. That at times more are busy
    takes as many cores again as the square root (Halfin and Whitt, 1981: square-root staffing).
    """
    work = float(busy.sum())
    return ceil((work + sqrt(work)) / vcpus)


def hosts_for(instances: Array, operators: Sequence[Operator], flavor: HostFlavor) -> int:
    """Hosts that first fit decreasing by memory packs them on."""
    room = flavor.capacity
    left_mb, left_cores = np.zeros(0), np.zeros(0)
    alike: Counter[tuple[float, float]] = Counter()
    for op, wanted in zip(operators, instances.tolist(), strict=True):
        alike[op.memory_mb, 0.0 if flavor.cpu_shared else op.cpu_cores] += int(wanted)
    for (need_mb, need_cores), count in sorted(alike.items(), reverse=True):
        fit = _times(left_mb, left_cores, need_mb, need_cores)
        taken = np.diff(np.minimum(np.cumsum(fit), count), prepend=0)
        left_mb, left_cores = left_mb - taken * need_mb, left_cores - taken * need_cores
        rest = count - int(taken.sum())
        if not rest:
            continue
        full = np.array([room.memory_mb]), np.array([room.cpu_cores])
        each = max(1, int(_times(*full, need_mb, need_cores)[0]))
        more = np.full(-(-rest // each), each)
        more[-1] = rest - each * (len(more) - 1)
        left_mb = np.append(left_mb, room.memory_mb - more * need_mb)
        left_cores = np.append(left_cores, room.cpu_cores - more * need_cores)
    return len(left_mb)


def _times(left_mb: Array, left_cores: Array, need_mb: float, need_cores: float) -> Array:
    """How often an instance fits into what is left."""
    by_memory = np.maximum(0.0, left_mb // need_mb)
    if not need_cores:
        return by_memory
    # A host of four cores holds eight instances of half a core, whatever was subtracted before.
    return np.maximum(0.0, np.minimum(by_memory, (left_cores + 1e-9) // need_cores))
