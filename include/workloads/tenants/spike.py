"""A sudden change of the rate: Henge, sections 7.1 (x3 for good) and 7.2.3 (x2 for an hour)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from include.workloads.pattern import Levels, level_problems


@dataclass(frozen=True, slots=True)
class Spike:
    """``level``, but ``factor`` times as much from ``from_s`` until ``to_s``; 0: to the end."""

    level: float = 1.0
    factor: float = 2.0
    from_s: float = 3600.0
    to_s: float = 7200.0

    def problems(self) -> Iterator[str]:
        yield from level_problems((self.level, self.level * self.factor), 1.0)
        if self.from_s <= 0:
            yield f"from_s must be above 0, got {self.from_s:g}"
        if self.to_s and self.to_s <= self.from_s:
            yield f"to_s ({self.to_s:g}) must be after from_s ({self.from_s:g}), or 0"

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """Two or three pieces, for every seed."""
        levels = (self.level, self.level * self.factor, self.level)
        starts_s = (0.0, self.from_s, self.to_s) if self.to_s else (0.0, self.from_s)
        return Levels(starts_s, levels[: len(starts_s)])
