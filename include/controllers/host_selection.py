"""How well a host suits an instance: Host Selection Algorithm, PeerJ CS 141, Algorithm 2."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from include.model.host import Capacity
from include.model.topology import Operator

CACHE_FACTOR = 0.01
"""CF, "we recommend to use the value 0.01"."""


class Amounts(NamedTuple):
    """Capacities of many hosts, an array each; one capacity is the same with numbers."""

    cpu_cores: Any
    memory_mb: Any


def suitability(
    capacity_total: Capacity | Amounts,
    capacity_left: Capacity | Amounts,
    op: Operator,
    cached: Any,
    cache_factor: float = CACHE_FACTOR,
) -> Any:
    """Algorithm 2, up(h, o): -1 when the instance does not fit, else lower is better.

    For one host, or for the arrays of many at once; ``cached`` is one bool, or an array.
    """
    feasibility_threshold = np.minimum(  # line 2
        capacity_left.cpu_cores / op.cpu_cores, capacity_left.memory_mb / op.memory_mb
    )
    remaining_cpu_cores = capacity_left.cpu_cores - op.cpu_cores  # line 6
    remaining_memory_mb = capacity_left.memory_mb - op.memory_mb  # line 7
    difference = abs(  # line 8
        remaining_cpu_cores / capacity_total.cpu_cores
        - remaining_memory_mb / capacity_total.memory_mb
    )
    fits = feasibility_threshold >= 1
    value = difference / np.where(fits, feasibility_threshold, 1.0)  # line 9
    value = np.where(cached, value * cache_factor, value)  # lines 10-12
    return np.where(fits, value, -1.0)  # lines 3-5 and 13


def uncached(numbers: NDArray[np.float64], op: Operator) -> NDArray[np.float64]:
    """The suitability of hosts without the image; infinite where nothing fits.

    ``numbers`` has a column for each: total and left CPU and memory.
    """
    values = suitability(Amounts(*numbers[:2]), Amounts(*numbers[2:4]), op, cached=False)
    return np.where(values < 0, np.inf, values)


def uncached_of_one(
    op: Operator, total_cores: float, total_mb: float, left_cores: float, left_mb: float
) -> float:
    """The same of one host: for a few it takes less time than arrays of them do."""
    threshold = min(left_cores / op.cpu_cores, left_mb / op.memory_mb)
    if threshold < 1:
        return math.inf
    cores, memory_mb = left_cores - op.cpu_cores, left_mb - op.memory_mb
    return abs(cores / total_cores - memory_mb / total_mb) / threshold
