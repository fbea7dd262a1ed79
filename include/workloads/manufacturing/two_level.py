"""Two-level pattern: PeerJ CS 141, Fig. 7B."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from include.workloads.pattern import Levels, held, level_problems


@dataclass(frozen=True, slots=True)
class TwoLevel:
    """The lowest and the highest level in turn, eight minutes each.

    The text says two to eight machines; 6 is what was run (docs/deviations.md, PATTERN-2L).
    """

    low: float = 2
    high: float = 6
    hold_s: float = 480.0

    def problems(self) -> Iterator[str]:
        yield from level_problems((self.low, self.high), self.hold_s)

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """Low, high, low, ..., for every seed."""
        return held([self.low, self.high], self.hold_s, duration_s)
