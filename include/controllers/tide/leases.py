"""Instances that are worth the price of their places, and the hosts that hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np

from include.controllers.tide.estimates import Array, Load
from include.controllers.tide.loss import AGE_S, Loss, age_weight
from include.model.host import HostFlavor
from include.model.topology import Operator, Topology

AT_ONCE = 16
"""Further instances of an operator whose gains are computed together."""


def places_of(flavor: HostFlavor, topology: Topology) -> float:
    """Instances of mean size that fit on a host."""
    operators = [topology.operator[name] for name in topology.operator_names]
    mean_mb = sum(op.memory_mb for op in operators) / len(operators)
    mean_cores = (
        0.0 if flavor.cpu_shared else sum(op.cpu_cores for op in operators) / len(operators)
    )
    room = flavor.capacity
    return max(1.0, _times(room.memory_mb, room.cpu_cores, mean_mb, mean_cores))


def worth_working_off(load: Load, place_per_s: float, lease_s: float) -> Array:
    """Instances for what waits at which late items and leases together cost least.

    Shape (operators,). *m* instances need waiting items * service time / m seconds. Until then what
    arrives is late, too, and counts the more the longer items wait; m places cost ``place_per_s``
    for ``lease_s``. Never fewer than work it off in a lease.
    """
    work_s = load.waiting * load.service_s
    weight = age_weight(load.waiting, load.mean_per_s, AGE_S)
    late_per_s = load.counts * weight * load.mean_per_s
    least: Array = np.sqrt(work_s * late_per_s / (place_per_s * lease_s))
    return np.maximum(least, work_s / lease_s)


def instances_worth_leasing(
    loss: Loss, place_per_s: float, peak_per_s: float, mean_busy: Array
) -> Array:
    """Instances by operator that are worth a place at ``place_per_s``, shape (operators,).

    At least one each. If an instance completes at least ``peak_per_s`` items per second: the busy
    instances, and more while the gain of another one exceeds the price. Operators with longer
    service times are not worth hosts for a peak and get ``mean_busy``, waiting items included.
    """
    load = loss.load
    cheap = load.service_s * peak_per_s <= load.counts
    instances = np.maximum(1.0, np.rint(mean_busy))
    busy = np.maximum(1.0, np.ceil(loss.busy))
    # Among hundreds of instances a few more save nothing, so take the optimum in closed form.
    many = loss.hindered(busy) > 1
    best = loss.busy + np.sqrt(
        load.counts * load.rate_per_s * loss.hindered(loss.busy) / place_per_s
    )
    instances[cheap] = np.where(many, np.maximum(busy, np.floor(best)), busy)[cheap]
    rows = np.flatnonzero(cheap)
    while rows.size:
        gains = loss.gains(instances[rows], AT_ONCE, rows)
        worth = (np.minimum.accumulate(gains, axis=0) > place_per_s).sum(axis=0)
        instances[rows] += worth
        rows = rows[worth == AT_ONCE]
    return instances


def hosts_for_work(busy: Array, vcpus: float) -> int:
    """Hosts with a shared CPU for a mean number of busy instances, which take a core each.

    Adds the square root for the variation around the mean (Halfin and Whitt, 1981: square-root
    staffing).
    """
    work = float(busy.sum())
    return ceil((work + sqrt(work)) / vcpus)


def hosts_for(instances: Array, operators: Sequence[Operator], flavor: HostFlavor) -> int:
    """Number of hosts used by first fit decreasing by memory."""
    room = flavor.capacity
    alike: Counter[tuple[float, float]] = Counter()
    for op, needed in zip(operators, instances.tolist(), strict=True):
        alike[op.memory_mb, 0.0 if flavor.cpu_shared else op.cpu_cores] += int(needed)
    left: list[tuple[float, float, int]] = []  # memory and cores of so many hosts in a row
    for (need_mb, need_cores), count in sorted(alike.items(), reverse=True):
        before, left = left, []
        for mb, cores, hosts in before:
            each = _times(mb, cores, need_mb, need_cores)
            full, part = divmod(min(count, each * hosts), max(1, each))
            count -= full * each + part
            split = (full, each), (min(1, part), part), (hosts - full - min(1, part), 0)
            left += [(mb - n * need_mb, cores - n * need_cores, m) for m, n in split if m]
        each = max(1, _times(room.memory_mb, room.cpu_cores, need_mb, need_cores))
        for hosts, n in (count // each, each), (min(1, count % each), count % each):
            if hosts:
                left.append((room.memory_mb - n * need_mb, room.cpu_cores - n * need_cores, hosts))
    return sum(hosts for _, _, hosts in left)


def _times(left_mb: float, left_cores: float, need_mb: float, need_cores: float) -> int:
    """How often an instance fits into what is left."""
    by_memory = max(0.0, left_mb // need_mb)
    if not need_cores:
        return int(by_memory)
    # The tolerance keeps rounding from losing an instance: four cores hold eight halves.
    return int(max(0.0, min(by_memory, (left_cores + 1e-9) // need_cores)))
