"""Image rates of PVLDB 12(7), section 3.2 and Fig. 6: a level of 1 is one image per second."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from include.workloads.pattern import Levels, held, hold_problems, level_problems, steps_in

MOST_STEPS = 1000
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Pyramid:
    """From ``low`` up to ``high`` in steps of ``step``, and down again, each for ``hold_s``."""

    low: float = 0
    high: float = 60
    step: float = 15
    hold_s: float = 130.0

    def problems(self) -> Iterator[str]:
        if not 0 <= self.low < self.high:
            yield f"pyramid needs 0 <= low < high, got {self.low:g} and {self.high:g}"
        elif not self._steps_are_whole():
            way = f"the way from {self.low:g} to {self.high:g} into at most {MOST_STEPS}"
            yield f"step must divide {way}, got {self.step:g}"
        yield from hold_problems(self.hold_s)

    def _steps_are_whole(self) -> bool:
        steps = (self.high - self.low) / self.step if self.step > 0 else 0.0
        return 0.5 < steps < MOST_STEPS + 0.5 and abs(steps - round(steps)) < 1e-9

    def unfold(self, duration_s: float, seed: int) -> Levels:
        steps = round((self.high - self.low) / self.step)
        climb = [self.low + i * self.step for i in range(steps + 1)]
        return held([*climb, *climb[-2:0:-1]], self.hold_s, duration_s)


@dataclass(frozen=True, slots=True)
class Square:
    """The lowest and the highest rate in turn, "instant changes"."""

    low: float = 1
    high: float = 65
    hold_s: float = 370.0

    def problems(self) -> Iterator[str]:
        yield from level_problems((self.low, self.high), self.hold_s)

    def unfold(self, duration_s: float, seed: int) -> Levels:
        return held([self.low, self.high], self.hold_s, duration_s)


@dataclass(frozen=True, slots=True)
class Lab:
    """A rate as a laboratory might produce it, "both rapid and smooth changes".

    The recorded rates were not published; this is a stand-in. Samples are scanned one after the
    other. Each has a random rate between ``low`` and ``high``, reached at once (one in two) or by
    a ramp, which drifts during the scan (``hold_s`` on average, by half more or less); one in ten
    pauses at ``low``. ``variant`` selects the afternoon, the same for all seeds as in the paper.
    For a recording of your own use the pattern ``trace``.
    """

    low: float = 2
    high: float = 65
    hold_s: float = 140.0
    step_s: float = 5.0
    variant: int = 1

    def problems(self) -> Iterator[str]:
        if not 0 <= self.low < self.high:
            yield f"lab needs 0 <= low < high, got {self.low:g} and {self.high:g}"
        if not self.step_s <= self.hold_s <= DAY_S:
            needs = f"lab needs step_s <= hold_s <= {DAY_S:g}, a day"
            yield f"{needs}, got {self.step_s:g} and {self.hold_s:g}"
        yield from hold_problems(self.step_s, "step_s")

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """A rate every ``step_s``, random by ``variant`` and not by the seed."""
        draw = random.Random(f"lab:{self.variant}")
        rates = [self.low]
        while len(rates) * self.step_s < duration_s:
            rates += self._sample(draw, rates[-1])
        levels = tuple(round(rate, 3) for rate in rates[: steps_in(duration_s, self.step_s)])
        return Levels(tuple(i * self.step_s for i in range(len(levels))), levels)

    def _sample(self, draw: random.Random, before: float) -> list[float]:
        """The rates while one sample is scanned."""
        steps = max(1, round(self.hold_s * draw.uniform(0.5, 1.5) / self.step_s))
        paused, rapid = draw.random() < 0.1, draw.random() < 0.5
        span = self.high - self.low
        rate = self.low if paused else self.low + span * draw.triangular(0.1, 1.0, 0.65)
        drift = 0.0 if paused else draw.uniform(-0.2, 0.2) * span / steps
        climb = 0 if rapid else max(1, steps // 2)
        ramp = [before + (rate - before) * (i + 1) / climb for i in range(climb)]
        rest = [rate + drift * i for i in range(steps - climb)]
        return [min(self.high, max(self.low, r)) for r in (*ramp, *rest)]
