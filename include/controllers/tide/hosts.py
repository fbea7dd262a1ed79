"""How many hosts are wanted, and which of them go."""

from __future__ import annotations

import numpy as np

from include.controllers.tide.estimates import Array, Load
from include.controllers.tide.loss import Loss
from include.model.host import HostFlavor
from include.model.topology import Operator

STEPS = 50
"""How often the closed form is corrected by one instance, at most."""


def wanted_instances(loss: Loss, place_per_s: float, backlog_s: float) -> Array:
    """Instances of every operator that are worth a place.

    ``place_per_s`` is what a place costs, in late items per second. Where even the work of a whole
    instance saves less than that, lateness is cheap, and the mean rate decides; ``backlog_s``
    is the time in which such an operator works off what waits.
    """
    load = loss.load
    dear = 1 / load.service_s >= place_per_s
    mean = np.rint((load.mean_per_s + load.waiting * loss.weight / backlog_s) * load.service_s)
    busy = loss.busy
    # Where an instance more saves just its price: the slope of the loss is that of one place.
    spare = np.sqrt(loss.weight * load.rate_per_s * loss.disturbed * busy / place_per_s)
    wanted = np.maximum(1.0, np.where(dear, np.ceil(busy + np.maximum(0.0, spare - 1)), mean))
    for _ in range(STEPS):
        grows = dear & (loss.gain(wanted) > place_per_s)
        if not grows.any():
            break
        wanted = wanted + grows
    return wanted


def hosts_for(instances: Array, operators: list[Operator], flavor: HostFlavor) -> int:
    """Hosts that first fit decreasing by memory packs them on."""
    room = flavor.capacity
    order = sorted(range(len(operators)), key=lambda row: -operators[row].memory_mb)
    left_mb, left_cores = np.zeros(0), np.zeros(0)
    for row in order:
        op = operators[row]
        need_cores = 0.0 if flavor.cpu_shared else op.cpu_cores
        for _ in range(int(instances[row])):
            fits = (left_mb >= op.memory_mb) & (left_cores >= need_cores)
            at = int(fits.argmax()) if fits.any() else len(left_mb)
            if at == len(left_mb):
                left_mb = np.append(left_mb, room.memory_mb)
                left_cores = np.append(left_cores, room.cpu_cores)
            left_mb[at] -= op.memory_mb
            left_cores[at] -= need_cores
    return len(left_mb)


def cost_of_place(load: Load, wanted: Array, hosts: int, host_per_s: float) -> float:
    """Price of one place per second."""
    return host_per_s * hosts / max(1.0, float(wanted.sum()))
