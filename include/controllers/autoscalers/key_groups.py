"""How the Flink operator makes instances of a factor: ``JobVertexScaler.scale`` of each version.

apache/flink-kubernetes-operator at its tags 1.7.0 to 1.15.0 and at 6e9caeb (FLIP-586).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class Alignment(Enum):
    """How instances are made to fit the key groups, or the partitions of a source."""

    OFF = "off"
    HALF = "to 1.9: the next divisor up to half of the key groups, else as computed"
    DOWN = "1.10: the next divisor, else down to where each instance would get more"
    EVEN = "1.11 to 1.14: as 1.10, and for fewer instances than half of the parts up to all"
    DIRECTED = "1.15: as before, but never against the direction of the change"
    BALANCED = "later: the next divisor or the next that gives each less, else as computed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """An operator to be scaled. ``key_groups`` and ``partitions`` of 0: it has none."""

    current: int
    factor: float
    lowest: int
    highest: int
    key_groups: int = 0
    partitions: int = 0

    @property
    def parts(self) -> int:
        """What is spread over the instances."""
        return self.partitions or self.key_groups

    @property
    def most(self) -> int:
        return min(self.highest, self.key_groups) if self.key_groups else self.highest

    @property
    def computed(self) -> int:
        """Instances times the factor within the limits, rounded up."""
        return min(max(self.lowest, math.ceil(self.factor * self.current)), self.most)


def scaled(one: Scaling, alignment: Alignment, *, maximise: bool = False) -> int:
    """How many instances it gets.

    ``maximise`` takes also a number that gives each instance less, divisor or not
    (MAXIMIZE_UTILISATION, since 1.11).
    """
    computed = one.computed
    directed = alignment in (Alignment.DIRECTED, Alignment.BALANCED)
    if alignment is Alignment.OFF or not one.parts or (directed and computed == one.current):
        return computed
    less_each = maximise or alignment is Alignment.BALANCED
    for instances in range(computed, _end(one, alignment) + 1):
        if one.parts % instances == 0 or (
            less_each and one.parts // instances < one.parts // computed
        ):
            return instances
    if alignment in (Alignment.HALF, Alignment.BALANCED):
        return computed
    lower = _downward(one)
    if directed and (lower - one.current) * (computed - one.current) <= 0:
        return one.current
    return lower


def _end(one: Scaling, alignment: Alignment) -> int:
    """The last number that is looked at upward."""
    half = one.parts // 2
    end = min(one.parts, one.most)
    if alignment is Alignment.HALF or (alignment is Alignment.DOWN and one.computed <= half):
        return min(half, end)
    if alignment in (Alignment.DIRECTED, Alignment.BALANCED) and one.computed < one.current:
        return min(one.current, end)
    return end


def _downward(one: Scaling) -> int:
    """The fewest of which none gets more than with those computed, or a divisor just below."""
    each = one.parts // one.computed
    below = next((n for n in range(one.computed, 0, -1) if one.parts // n > each), 0)
    if below and one.parts % below:
        below += 1
    return max(below, one.lowest)
