"""Loads of Henge: days of web traffic, and sudden changes of the rate."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import log, sqrt

from include.model.errors import not_above_0, unknown_name
from include.workloads.pattern import Levels, hold_problems, level_problems

SHAPES: dict[str, tuple[tuple[float, float], ...]] = {
    # "Workloads increase from hour 7 of the day, reach their peak by hour 13 1/3, and then start
    # to fall." Everything else about the shapes is ours (docs/deviations.md, HENGE-DIURNAL).
    "epa": ((0, 0.22), (4, 0.18), (7, 0.2), (9, 0.6), (13 + 1 / 3, 1.0), (17, 0.75), (20, 0.3)),
    "sdsc": ((0, 0.24), (5, 0.2), (7, 0.22), (10, 0.7), (13 + 1 / 3, 1.0), (18, 0.55), (22, 0.26)),
}
"""(hour, share of the peak), joined by lines; the day closes in itself."""
STEPS_PER_HOUR = 10
MOST_NOISE = 10.0


@dataclass(frozen=True, slots=True)
class Diurnal:
    """A day as in a web trace, repeated; an hour of it takes ``hour_s``.

    Section 7.2.3 B, after the EPA-HTTP and SDSC-HTTP traces.

    ``level`` is the peak's; a share ``floor`` of it arrives at all hours. Each tenth of an hour is
    multiplied by random noise of mean 1 and coefficient of variation ``noise_cv``, different for
    every day and seed.
    """

    trace: str = "epa"
    level: float = 1.0
    floor: float = 0.0
    hour_s: float = 600.0
    noise_cv: float = 0.05

    def problems(self) -> Iterator[str]:
        if self.trace not in SHAPES:
            yield unknown_name("trace", self.trace, SHAPES)
        yield from not_above_0(self, "level")
        yield from hold_problems(self.hour_s, "hour_s", STEPS_PER_HOUR)
        if not 0 <= self.floor < 1:
            yield f"floor must be at least 0 and below 1, got {self.floor:g}"
        if not 0 <= self.noise_cv <= MOST_NOISE:
            yield f"noise_cv must be from 0 to {MOST_NOISE:g}, got {self.noise_cv:g}"

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """Ten pieces per hour of the trace."""
        draw = random.Random(f"diurnal:{self.trace}:{seed}")
        sigma = sqrt(log(1 + self.noise_cv**2))
        step_s = self.hour_s / STEPS_PER_HOUR
        starts_s: list[float] = []
        levels: list[float] = []
        while len(starts_s) * step_s < duration_s:
            hour = (len(starts_s) + 0.5) / STEPS_PER_HOUR
            factor = draw.lognormvariate(-(sigma**2) / 2, sigma) if sigma else 1.0
            starts_s.append(len(starts_s) * step_s)
            share = self.floor + (1 - self.floor) * share_of_peak(self.trace, hour)
            levels.append(self.level * share * factor)
        return Levels(tuple(starts_s), tuple(levels))


def share_of_peak(trace: str, hour: float) -> float:
    """The shape at an hour since midnight of the first day, between 0 and 1."""
    points = SHAPES[trace]
    points = (*points, (points[0][0] + 24, points[0][1]))
    hour %= 24
    after = next(i for i, (at, _) in enumerate(points) if at > hour)
    (start, low), (end, high) = points[after - 1], points[after]
    return low + (high - low) * (hour - start) / (end - start)


@dataclass(frozen=True, slots=True)
class Spike:
    """``level``, but ``factor`` times as much from ``from_s`` until ``to_s``; 0: to the end.

    Sections 7.1 (x3 for good) and 7.2.3 (x2 for an hour).
    """

    level: float = 1.0
    factor: float = 2.0
    from_s: float = 3600.0
    to_s: float = 7200.0

    def problems(self) -> Iterator[str]:
        yield from level_problems((self.level, self.level * self.factor), 1.0)
        yield from not_above_0(self, "from_s")
        if self.to_s and self.to_s <= self.from_s:
            yield f"to_s ({self.to_s:g}) must be after from_s ({self.from_s:g}), or 0"

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """Two or three pieces, for every seed."""
        levels = (self.level, self.level * self.factor, self.level)
        starts_s = (0.0, self.from_s, self.to_s) if self.to_s else (0.0, self.from_s)
        return Levels(starts_s, levels[: len(starts_s)])
