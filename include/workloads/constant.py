"""One level for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from include.workloads.pattern import Levels, level_problems


@dataclass(frozen=True, slots=True)
class Constant:
    """The same level from the first to the last second."""

    level: float = 4

    def problems(self) -> Iterator[str]:
        yield from level_problems((self.level,), 1.0)

    def unfold(self, duration_s: float, seed: int) -> Levels:
        return Levels((0.0,), (float(self.level),))
