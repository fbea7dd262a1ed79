"""Key groups: an instance takes whole ones, so an operator is as slow as its fullest instance.

An operator whose records come in parts (key groups of Flink, partitions of Kafka) deals these out
to its instances. Which instance has which is that of Flink: of ``g`` groups instance ``i`` of ``n``
has those from ``ceil(i g / n)`` up to ``ceil((i + 1) g / n)`` (apache/flink,
``KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex``).
"""

from __future__ import annotations

import numpy as np

from include.testbeds.flow.arrays import F64
from include.testbeds.virtual.draws import Draws


def group_sizes(draws: Draws, operator: str, groups: int, skew_cv: float) -> F64:
    """How many records come in each group, over those of a group on average. Shape (groups,).

    They are gamma distributed with the deviation ``skew_cv``; at 0 all are equal.
    """
    if not skew_cv:
        return np.ones(groups)
    sizes = draws.generator("key_groups", operator).standard_gamma(1 / skew_cv**2, groups)
    return np.asarray(sizes / sizes.mean())


def loads_of_instances(sizes: F64, instances: int) -> F64:
    """What each instance has to do, over the mean of all. Shape (instances,)."""
    bounds = -(-np.arange(instances + 1) * sizes.size // instances)
    total = np.concatenate([[0.0], np.cumsum(sizes)])
    return np.asarray(np.diff(total[bounds]) * instances / total[-1])
