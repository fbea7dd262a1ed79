"""Stepwise pattern: PeerJ CS 141, Fig. 7A, "approximated to a sinus curve"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from include.workloads.pattern import Levels, held, level_problems


@dataclass(frozen=True, slots=True)
class Stepwise:
    """Levels 2, 4, 6, 4, ... machines, four minutes each."""

    levels: tuple[float, ...] = (2, 4, 6, 4)
    hold_s: float = 240.0

    def problems(self) -> Iterator[str]:
        yield from level_problems(self.levels, self.hold_s)

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """The levels in turn, for every seed."""
        return held(list(self.levels), self.hold_s, duration_s)
