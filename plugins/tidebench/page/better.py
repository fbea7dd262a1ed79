"""Better and worse: which way a quantity should go, and whether a difference is chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from include.results.reports.statistics import CONFIDENCE, half_interval

HIGHER = ("compliance", "utility")
LOWER = ("cost", "regret", "unprocessed", "age_", "latency_", "duration_p", "host_hours")
NEITHER = ("cover_cost",)
"""The least that any policy would pay is no merit of the one that ran."""


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of one quantity over runs that differ in their seed, with its 95 % interval."""

    mean: float
    sigma: float | None
    """None of a single run."""
    runs: int

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        return half_interval(self.sigma, self.runs)


def mean_of(values: Sequence[float]) -> Mean:
    """Of at least one value."""
    sigma = stdev(map(float, values)) if len(values) > 1 else None
    return Mean(fmean(values), sigma, len(values))


def as_mean(value: object) -> Mean | None:
    """A number as the mean of itself; None for words and where there is none."""
    if isinstance(value, Mean):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return mean_of([value]) if is_number else None  # type: ignore[list-item]


def direction_of(name: str) -> int:
    """1 where more of a column is better, -1 where less is, 0 where neither is."""
    if name in NEITHER:
        return 0
    if any(word in name for word in HIGHER):
        return 1
    return -1 if any(word in name for word in LOWER) else 0


def verdict_of(first: Mean, second: Mean, direction: int) -> str:
    """Whether the second is `better` or `worse` than the first, `unclear`, or nothing is said.

    Means have to differ by more than Welch's 95 % interval of their difference. Where either is a
    single run nothing is said: one seed cannot tell.
    """
    difference = second.mean - first.mean
    if not direction or not difference or first.sigma is None or second.sigma is None:
        return ""
    squares = first.sigma**2 / first.runs, second.sigma**2 / second.runs
    if abs(difference) <= _welch_half(squares, (first.runs, second.runs)):
        return "unclear"
    return "better" if difference * direction > 0 else "worse"


def _welch_half(squares: Sequence[float], runs: Sequence[int]) -> float:
    """Half the 95 % interval of a difference of means, from their squared standard errors."""
    from scipy.special import stdtrit

    if not sum(squares):
        return 0.0
    parts = (square**2 / (count - 1) for square, count in zip(squares, runs, strict=True))
    freedom = sum(squares) ** 2 / sum(parts)
    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * math.sqrt(sum(squares))
