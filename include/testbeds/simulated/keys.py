"""How much of what comes to a keyed operator each of its instances gets, as Apache Flink deals it.

A key belongs to one of 128 key groups by its hash, and an instance has whole groups, so what an
instance gets changes with how many there are (apache/flink, ``KeyGroupRangeAssignment`` and
``MathUtils.murmurHash``). Keys are the whole numbers from 0, as the job of the testbed ``flink``
has them; key k has a share proportional to (k + 1) to the power of -exponent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from include.model.topology import Keyed

KEY_GROUPS = 128
"""What the testbed ``flink`` gives its jobs as their highest parallelism."""


def shares_of_instances(keyed: Keyed, instances: int) -> NDArray[np.float64]:
    """What each of so many instances gets, over an even share. Shape (instances,), mean 1."""
    keys = np.arange(keyed.keys)
    weights = (keys + 1.0) ** -keyed.exponent
    instance = key_group(keys) * instances // KEY_GROUPS
    sums = np.bincount(instance, weights, minlength=instances)
    return np.asarray(sums * instances / weights.sum())


def key_group(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The key group of whole numbers: murmur3 of 32 bits, positive, modulo the groups."""
    code = keys.astype(np.uint32)
    code = _rotated(code * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    code = _rotated(code, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    code ^= np.uint32(4)
    code = (code ^ (code >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    code = (code ^ (code >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    signed = (code ^ (code >> np.uint32(16))).astype(np.int32).astype(np.int64)
    return np.asarray(np.where(signed == -(1 << 31), 0, np.abs(signed)) % KEY_GROUPS)


def _rotated(code: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return np.asarray(code << np.uint32(bits) | code >> np.uint32(32 - bits))
