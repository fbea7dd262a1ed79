"""How well a host suits an instance: Host Selection Algorithm, PeerJ CS 141, Algorithm 2."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from include.model.topology import Operator

CACHE_FACTOR = 0.01
"""CF, "we recommend to use the value 0.01": where the host has the image, what is computed here is
multiplied by it (Algorithm 2, lines 10-12; ``FreeCapacities.best``)."""


def uncached(numbers: NDArray[np.float64], op: Operator) -> NDArray[np.float64]:
    """Algorithm 2, up(h, o), of hosts without the image: lower is better, infinite (there -1) where
    the instance does not fit.

    ``numbers`` has a column for each host: total CPU and memory, those that are left, others.
    """
    total_cpu_cores, total_memory_mb, cpu_cores, memory_mb = numbers[:4]
    feasibility_threshold = np.minimum(cpu_cores / op.cpu_cores, memory_mb / op.memory_mb)  # line 2
    remaining_cpu_cores = cpu_cores - op.cpu_cores  # line 6
    remaining_memory_mb = memory_mb - op.memory_mb  # line 7
    difference = abs(  # line 8
        remaining_cpu_cores / total_cpu_cores - remaining_memory_mb / total_memory_mb
    )
    fits = feasibility_threshold >= 1
    value = difference / np.where(fits, feasibility_threshold, 1.0)  # line 9
    return np.where(fits, value, np.inf)  # lines 3-5 and 13


def uncached_of_one(
    op: Operator, total_cores: float, total_mb: float, left_cores: float, left_mb: float
) -> float:
    """The same of one host: for a few it takes less time than arrays of them do."""
    by_cores, by_memory = left_cores / op.cpu_cores, left_mb / op.memory_mb
    threshold = by_cores if by_cores < by_memory else by_memory  # min takes longer
    if threshold < 1:
        return math.inf
    cores, memory_mb = left_cores - op.cpu_cores, left_mb - op.memory_mb
    return abs(cores / total_cores - memory_mb / total_mb) / threshold
