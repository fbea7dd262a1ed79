"""Better and worse: which way a quantity should go, and whether a difference is chance."""

from __future__ import annotations

from include.results.reports.statistics import CONFIDENCE, Mean, mean_of, welch_p

HIGHER = ("compliance", "utility")
LOWER = ("cost", "regret", "unprocessed", "age_", "latency_", "duration_p", "host_hours")
NEITHER = ("cover_cost",)
"""The least that any policy would pay is no merit of the one that ran."""


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

    What Welch's test with 95 % confidence may call chance is unclear. Where either is a single
    run nothing is said: one seed cannot tell.
    """
    difference = second.mean - first.mean
    if not direction or not difference or min(first.runs, second.runs) < 2:
        return ""
    if welch_p(first, second) >= 1 - CONFIDENCE:
        return "unclear"
    return "better" if difference * direction > 0 else "worse"
