"""Cosine, random walk and steps of the ESPA experiments, in levels.

Source: delftdata/espa-autoscaling, commit a10afb9 (2024-06-10), below
experiments/src/main/java/ch/ethz/systems/strymon/ds2/flink/nexmark/sources: what a class
``XLoadPattern`` computes for iteration i is ``LoadPattern/XLoadPattern.java``, ``getLoadPattern``;
its defaults are ``setDefaultValues`` for query 1; an iteration takes 60 s
(``BidPersonGeneratorKafka.java``, ``iteration-duration-ms``), here ``hold_s``.

Rates there are whole records a second. One level stands for ``RECORDS_PER_LEVEL`` of them in the
defaults; levels are not rounded. Spikes, which are off there by default, are left out. Random
numbers are drawn by seed here and are not those of ``java.util.Random``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from include.model.errors import not_above_0
from include.workloads.pattern import (
    LEAST_HOLD_S,
    Levels,
    held,
    hold_problems,
    level_problems,
    steps_in,
)

RECORDS_PER_LEVEL = 25_000
"""Ours: makes the mean of query 1 six levels, and its peak ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine:
    """``CosineLoadPattern``: max(0, mean + divergence * cos(2 pi i / period) + noise).

    The noise of each iteration is uniform in -``noise`` to ``noise``. ``period_s`` is a full wave,
    60 iterations by default.
    """

    mean: float = 150_000 / RECORDS_PER_LEVEL
    divergence: float = 100_000 / RECORDS_PER_LEVEL
    noise: float = 10_000 / RECORDS_PER_LEVEL
    period_s: float = 3600.0
    hold_s: float = 60.0

    def problems(self) -> Iterator[str]:
        yield from not_above_0(self, "mean")
        if not self.period_s >= LEAST_HOLD_S:
            yield f"period_s must be at least {LEAST_HOLD_S:g} s, got {self.period_s:g}"
        yield from hold_problems(self.hold_s)
        yield from _negative(self, "divergence", "noise")

    def unfold(self, duration_s: float, seed: int) -> Levels:
        draw = random.Random(f"espa_cosine:{seed}")
        levels = []
        for i in range(steps_in(duration_s, self.hold_s)):
            wave = self.divergence * math.cos(2 * math.pi * i * self.hold_s / self.period_s)
            levels.append(max(0.0, self.mean + wave + draw.uniform(-self.noise, self.noise)))
        return held(levels, self.hold_s, duration_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """``RandomLoadPattern``: ``start``, then each iteration the one before plus a uniform step.

    A step is between ``down`` and ``up``; the level is kept between 0 and ``highest``, which is
    infinite there by default. Their experiments (deployment/experiments/experiments-full.txt) have
    steps of 0.4 times the start, up and down, and a highest of twice the start.
    """

    start: float = 150_000 / RECORDS_PER_LEVEL
    down: float = -10_000 / RECORDS_PER_LEVEL
    up: float = 10_000 / RECORDS_PER_LEVEL
    highest: float = math.inf
    hold_s: float = 60.0

    def problems(self) -> Iterator[str]:
        """A start of nothing, limits in the wrong order, no time."""
        yield from not_above_0(self, "start", "highest")
        yield from hold_problems(self.hold_s)
        if not -math.inf < self.down <= self.up < math.inf:
            yield f"down must not be above up, got {self.down:g} and {self.up:g}"

    def unfold(self, duration_s: float, seed: int) -> Levels:
        draw = random.Random(f"espa_random:{seed}")
        levels = [min(self.highest, self.start)]
        while len(levels) < steps_in(duration_s, self.hold_s):
            step = draw.uniform(self.down, self.up)
            levels.append(max(0.0, min(self.highest, levels[-1] + step)))
        return held(levels, self.hold_s, duration_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """``ConvergenceLoadPattern``, the steps of ESPA: a level for each round, plus uniform noise.

    With n iterations in a run, the first round has n // 7 of them and the others 2 (n // 7) each,
    unless ``first_s`` and ``round_s`` say otherwise. As there, iteration i is in the first round
    while i <= first and in round 1 + (i - first) // round after it, so the second round is an
    iteration shorter than those that follow; after the last round the level is 0. ``levels`` are 0,
    1, 2 and 1 times a step of 1,000,000 records there and of 4 levels here; ``noise`` is a tenth
    of a step.
    """

    levels: tuple[float, ...] = (0.0, 4.0, 8.0, 4.0)
    noise: float = 0.4
    first_s: float | None = None
    round_s: float | None = None
    hold_s: float = 60.0

    def problems(self) -> Iterator[str]:
        yield from level_problems(self.levels, self.hold_s)
        yield from _negative(self, "noise")
        for name in ("first_s", "round_s"):
            length_s = getattr(self, name)
            if length_s is not None and not self.hold_s <= length_s < math.inf:
                yield f"{name} must be at least hold_s ({self.hold_s:g}), got {length_s:g}"

    def unfold(self, duration_s: float, seed: int) -> Levels:
        draw = random.Random(f"espa_step:{seed}")
        iterations = steps_in(duration_s, self.hold_s)
        seventh = max(1, iterations // 7)
        first = int(self.first_s // self.hold_s) if self.first_s else seventh
        regular = int(self.round_s // self.hold_s) if self.round_s else 2 * seventh
        levels = []
        for i in range(iterations):
            place = 1 + (i - first) // regular if i > first else 0
            level = self.levels[place] if place < len(self.levels) else 0.0
            levels.append(max(0.0, level + draw.uniform(-self.noise, self.noise)))
        return held(levels, self.hold_s, duration_s)


def _negative(pattern: Cosine | Rounds, *names: str) -> Iterator[str]:
    for name in names:
        if not 0 <= getattr(pattern, name) < math.inf:
            yield f"{name} must be a number of at least 0, got {getattr(pattern, name):g}"
