"""Ticks of a trading day: stand-ins for the three days of Heinze et al., Fig. 3.

The original days are not public. These have the documented shape of a trading day, all with
mean 1 before chance: a rush at the open that ebbs away, a quiet noon, the opening of another
market in the afternoon and a rise to the close. Day 1 is that; day 2 is nervous: stronger
fluctuations and many higher bursts; day 3 trends from a quiet morning to a busy close. Bursts only
add: the means are 1.05, 1.13 and 1.05.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp, sqrt

from include.model.errors import not_above_0, unknown_name
from include.workloads.pattern import Levels

SETTLING_S = 45.0
"""Time constant of the random fluctuation."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Heights of the parts of a day over its base of 1, and its randomness.

    ``fluctuation`` is the standard deviation of the slow random factor, ``jitter`` that of a
    second. A day has ``bursts`` on average, each multiplying the level by 1 to 1 + ``burst`` at
    first and fading within seconds to minutes.
    """

    at_open: float
    noon: float
    afternoon: float
    at_close: float
    trend: float
    fluctuation: float
    jitter: float
    bursts: float
    burst: float

    def at(self, share: float) -> float:
        """The level without randomness at a share of the day (0 open, 1 close), not normalised."""
        return (
            1.0
            + self.at_open * exp(-share / 0.07)
            - self.noon * exp(-(((share - 0.45) / 0.14) ** 2))
            + self.afternoon * exp(-(((share - 0.78) / 0.06) ** 2))
            + self.at_close * exp(-(1 - share) / 0.06)
            + self.trend * (share - 0.5)
        )


SHAPES: Mapping[int, Shape] = {
    1: Shape(0.5, 0.25, 0.3, 0.4, 0.0, fluctuation=0.25, jitter=0.08, bursts=20, burst=0.6),
    2: Shape(0.5, 0.25, 0.4, 0.4, 0.0, fluctuation=0.35, jitter=0.12, bursts=40, burst=1.0),
    3: Shape(0.1, 0.15, 0.2, 0.5, 0.8, fluctuation=0.22, jitter=0.08, bursts=20, burst=0.6),
}


@dataclass(frozen=True, slots=True)
class TradingDay:
    """A day in ``day_s``, repeated until the end of the run, with a level every second.

    ``level`` is the mean of the day without bursts. Random parts differ by seed and between
    repetitions.
    """

    number: int
    level: float = 1.0
    day_s: float = 3600.0

    def problems(self) -> Iterator[str]:
        if self.number not in SHAPES:
            yield unknown_name("trading day", self.number, map(str, SHAPES))
        yield from not_above_0(self, "level", "day_s")

    def unfold(self, duration_s: float, seed: int) -> Levels:
        shape, draw = SHAPES[self.number], random.Random(f"trading_day:{self.number}:{seed}")
        seconds = max(1, -int(-duration_s // 1))
        mean = sum(shape.at((i + 0.5) / 1000) for i in range(1000)) / 1000
        chance = _chance(shape, self.day_s, draw)
        levels = [
            self.level * shape.at(second % self.day_s / self.day_s) / mean * next(chance)
            for second in range(seconds)
        ]
        return Levels(tuple(float(second) for second in range(seconds)), tuple(levels))


def _chance(shape: Shape, day_s: float, draw: random.Random) -> Iterator[float]:
    """Random factors, one per second: autoregressive fluctuation, jitter, and fading bursts."""
    keep = exp(-1 / SETTLING_S)
    drift, burst, fade = draw.gauss(0, shape.fluctuation), 0.0, 1.0
    while True:
        if draw.random() < shape.bursts / day_s:
            burst, fade = draw.uniform(0, shape.burst), exp(-1 / draw.uniform(5, 60))
        spread = shape.fluctuation**2 + shape.jitter**2
        yield exp(drift + draw.gauss(0, shape.jitter) - spread / 2) * (1 + burst)
        drift = keep * drift + sqrt(1 - keep**2) * draw.gauss(0, shape.fluctuation)
        burst *= fade
