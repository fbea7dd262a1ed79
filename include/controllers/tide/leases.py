"""How many instances are worth a place, and how many hosts hold them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from include.controllers.tide.estimates import Array
from include.controllers.tide.loss import Loss
from include.model.host import HostFlavor
from include.model.topology import Operator

STEPS = 50
"""How often the closed form is corrected by one instance, at most."""


def wanted_instances(loss: Loss, place_per_s: float, backlog_s: float) -> Array:
    """Instances of every operator that are worth a place; at least one each.

    ``place_per_s`` is what a place costs, in late items per second. Where even the work of a whole
    instance saves less than that, lateness is cheap: there the mean rate decides, and what waits
    is worked off within ``backlog_s``.
    """
    load = loss.load
    dear = 1 / load.service_s >= place_per_s
    mean = np.rint((load.mean_per_s + load.waiting / backlog_s) * load.service_s)
    # Where one more saves just its price: the slope of the loss is the price of a place.
    spare = np.sqrt(loss.weight * load.rate_per_s * loss.disturbed * loss.busy / place_per_s)
    wanted = np.maximum(1.0, np.where(dear, np.ceil(loss.busy + np.maximum(0, spare - 1)), mean))
    for _ in range(STEPS):
        grows = dear & (loss.gain(wanted) > place_per_s)
        if not grows.any():
            break
        wanted = wanted + grows
    return wanted


def hosts_for(instances: Array, operators: Sequence[Operator], flavor: HostFlavor) -> int:
    """Hosts that first fit decreasing by memory packs them on."""
    room = flavor.capacity
    left_mb, left_cores = np.zeros(0), np.zeros(0)
    for row in sorted(range(len(operators)), key=lambda row: -operators[row].memory_mb):
        op, count = operators[row], int(instances[row])
        need_cores = 0.0 if flavor.cpu_shared else op.cpu_cores
        fit = _times(left_mb, left_cores, op.memory_mb, need_cores)
        taken = np.diff(np.minimum(np.cumsum(fit), count), prepend=0)
        left_mb, left_cores = left_mb - taken * op.memory_mb, left_cores - taken * need_cores
        rest = count - int(taken.sum())
        if not rest:
            continue
        full = np.array([room.memory_mb]), np.array([room.cpu_cores])
        each = max(1, int(_times(*full, op.memory_mb, need_cores)[0]))
        more = np.full(-(-rest // each), each)
        more[-1] = rest - each * (len(more) - 1)
        left_mb = np.append(left_mb, room.memory_mb - more * op.memory_mb)
        left_cores = np.append(left_cores, room.cpu_cores - more * need_cores)
    return len(left_mb)


def _times(left_mb: Array, left_cores: Array, need_mb: float, need_cores: float) -> Array:
    """How often an instance fits into what is left."""
    by_memory = np.maximum(0.0, left_mb // need_mb)
    if not need_cores:
        return by_memory
    # A host of four cores holds eight instances of half a core, whatever was subtracted before.
    return np.maximum(0.0, np.minimum(by_memory, (left_cores + 1e-9) // need_cores))
