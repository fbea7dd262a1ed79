"""Which host takes an instance: Host Selection Algorithm, PeerJ CS 141, Algorithm 2."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from include.model.host import Capacity
from include.model.topology import Operator

CACHE_FACTOR = 0.01
"""CF, "we recommend to use the value 0.01"."""


@dataclass(frozen=True, slots=True)
class Room:
    """What instances may still reserve on one host.

    A host whose machine still boots (``up`` is false) has room for instances that wait for it.
    """

    host: str
    total: Capacity
    left: Capacity
    images: frozenset[str]
    up: bool

    def with_one(self, op: Operator) -> Room:
        """The same host with one more instance, and its image in the cache."""
        images = self.images if op.name in self.images else self.images | {op.name}
        return Room(self.host, self.total, self.left.less(op), images, self.up)

    def without_one(self, op: Operator) -> Room:
        """The same host with one instance fewer; the image stays cached."""
        return Room(self.host, self.total, self.left.more(op), self.images, self.up)


@dataclass(frozen=True, slots=True)
class Choice:
    """The host that Algorithm 2 ranks first, and its suitability."""

    host: str
    suitability: float


def suitability(
    capacity_total: Capacity,
    capacity_left: Capacity,
    op: Operator,
    cached: bool,
    cache_factor: float = CACHE_FACTOR,
) -> float:
    """Algorithm 2, up(h, o): -1 when the instance does not fit, else lower is better."""
    feasibility_threshold = capacity_left.instances_of(op)  # line 2
    if feasibility_threshold < 1:  # lines 3-5
        return -1.0
    remaining_cpu_cores = capacity_left.cpu_cores - op.cpu_cores  # line 6
    remaining_memory_mb = capacity_left.memory_mb - op.memory_mb  # line 7
    difference = abs(  # line 8
        remaining_cpu_cores / capacity_total.cpu_cores
        - remaining_memory_mb / capacity_total.memory_mb
    )
    value = difference / feasibility_threshold  # line 9
    if cached:  # lines 10-12
        value *= cache_factor
    return value  # line 13


def best_host(
    rooms: Iterable[Room], op: Operator, cache_factor: float = CACHE_FACTOR
) -> Choice | None:
    """The lowest suitability that is not negative; the host leased first wins a tie.

    None when the instance fits nowhere.
    """
    best: str | None = None
    lowest = math.inf
    for room in rooms:
        value = suitability(room.total, room.left, op, op.name in room.images, cache_factor)
        if 0.0 <= value < lowest:
            best, lowest = room.host, value
    return None if best is None else Choice(best, lowest)


def first_host(rooms: Iterable[Room], op: Operator) -> str | None:
    """First fit: the host leased first that has room, or None."""
    return next((room.host for room in rooms if room.left.fits(op)), None)
