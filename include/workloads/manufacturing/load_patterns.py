"""The patterns of PeerJ CS 141, Fig. 7: stepwise, two-level and random walks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from include.files.whole import csv_rows
from include.workloads.pattern import Levels, held, hold_problems, level_problems

PUBLISHED = Path(__file__).with_name("random_walk_levels.csv")


@dataclass(frozen=True, slots=True)
class Stepwise:
    """Levels 2, 4, 6, 4, ... machines, four minutes each.

    Fig. 7A, "approximated to a sinus curve". The text says two to eight machines; 6 is what was
    run (docs/deviations.md, PATTERN-2L).
    """

    levels: tuple[float, ...] = (2, 4, 6, 4)
    hold_s: float = 240.0

    def problems(self) -> Iterator[str]:
        yield from level_problems(self.levels, self.hold_s)

    def unfold(self, duration_s: float, seed: int) -> Levels:
        return held(list(self.levels), self.hold_s, duration_s)


@dataclass(frozen=True, slots=True)
class TwoLevel:
    """The lowest and the highest level of `Stepwise` in turn, eight minutes each (Fig. 7B)."""

    low: float = 2
    high: float = 6
    hold_s: float = 480.0

    def problems(self) -> Iterator[str]:
        yield from level_problems((self.low, self.high), self.hold_s)

    def unfold(self, duration_s: float, seed: int) -> Levels:
        return held([self.low, self.high], self.hold_s, duration_s)


@dataclass(frozen=True, slots=True)
class RandomWalk:
    """Eq. 6 from four machines: down below 0.4, up above 0.6, else unchanged, every minute.

    Steps beyond ``low`` or ``high`` are not taken: the paper selected walks between one and eight.
    """

    start: int = 4
    low: int = 1
    high: int = 8
    hold_s: float = 60.0

    def problems(self) -> Iterator[str]:
        if not 0 <= self.low <= self.start <= self.high:
            yield (
                "random_walk needs 0 <= low <= start <= high, "
                f"got {self.low}, {self.start}, {self.high}"
            )
        if self.high == 0:
            yield "high is 0, so nothing would ever arrive; give at least 1"
        yield from hold_problems(self.hold_s)

    def unfold(self, duration_s: float, seed: int) -> Levels:
        draw = random.Random(f"random_walk:{seed}")
        level, walk = self.start, [float(self.start)]
        while len(walk) * self.hold_s < duration_s:
            r = draw.random()
            step = -1 if r < 0.4 else 1 if r > 0.6 else 0
            if self.low <= level + step <= self.high:
                level += step
            walk.append(float(level))
        return held(walk, self.hold_s, duration_s)


@dataclass(frozen=True, slots=True)
class PublishedWalk:
    """The machine levels of the evaluation, one a minute for 120 minutes (Figs. 7C, 7D)."""

    number: int

    def problems(self) -> Iterator[str]:
        yield from ()

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """The published levels; a longer run repeats them."""
        column = f"random_walk_{self.number}_machines"
        return held([float(row[column]) for row in csv_rows(PUBLISHED)], 60.0, duration_s)
