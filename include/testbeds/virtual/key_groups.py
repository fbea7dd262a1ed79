"""Key groups: an instance takes whole ones, so an operator is as slow as its fullest instance.

An operator whose records come in parts (key groups of Flink, partitions of Kafka) deals these out
to its instances. Which instance has which is that of Flink: of ``g`` groups instance ``i`` of ``n``
has those from ``ceil(i g / n)`` up to ``ceil((i + 1) g / n)`` (apache/flink,
``KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from include.model.topology import Keyed

F64 = NDArray[np.float64]
KEY_GROUPS = 128
"""What the testbed ``flink`` gives its jobs as their highest parallelism."""


def sizes_of_keys(keyed: Keyed, groups: int = KEY_GROUPS) -> F64:
    """How many records come in each group, over those of a group on average. Shape (groups,).

    Keys are the whole numbers from 0, as the job of the testbed ``flink`` has them; key k has a
    share proportional to (k + 1) to the power of -exponent.
    """
    keys = np.arange(keyed.keys)
    sizes = np.bincount(key_group(keys, groups), (keys + 1.0) ** -keyed.exponent, groups)
    return np.asarray(sizes / sizes.mean())


def loads_of_instances(sizes: F64, instances: int) -> F64:
    """What each instance has to do, over the mean of all. Shape (instances,)."""
    bounds = -(-np.arange(instances + 1) * sizes.size // instances)
    total = np.concatenate([[0.0], np.cumsum(sizes)])
    return np.asarray(np.diff(total[bounds]) * instances / total[-1])


def key_group(keys: NDArray[np.int64], groups: int = KEY_GROUPS) -> NDArray[np.int64]:
    """The group of whole numbers: murmur3 of 32 bits, positive, modulo the groups (apache/flink,
    ``MathUtils.murmurHash``).
    """
    code = keys.astype(np.uint32)
    code = _rotated(code * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    code = _rotated(code, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    code ^= np.uint32(4)
    code = (code ^ (code >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    code = (code ^ (code >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    signed = (code ^ (code >> np.uint32(16))).astype(np.int32).astype(np.int64)
    return np.asarray(np.where(signed == -(1 << 31), 0, np.abs(signed)) % groups)


def _rotated(code: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return np.asarray(code << np.uint32(bits) | code >> np.uint32(32 - bits))
