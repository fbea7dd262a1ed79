"""What needs the t distribution: intervals and p values of means over a few runs.

``stdtr`` and ``stdtrit`` are the cdf and ppf of ``scipy.stats.t``, which takes seconds to import.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

CONFIDENCE = 0.95
STATISTICS_COLUMNS = (
    "pattern", "btu_min", "metric", "controller", "other_controller", "pairs", "mean",
    "other_mean", "difference", "difference_sigma", "ci95_low", "ci95_high", "paired_p",
    "welch_t", "welch_df", "welch_p", "cohens_d", "hedges_g",
)  # fmt: skip


class Mean(NamedTuple):
    """The mean of one value per run; sigma is the sample standard deviation, 0 for a single run."""

    mean: float
    sigma: float
    runs: int

    @property
    def known_sigma(self) -> float | None:
        """None for a single run, which says nothing of it."""
        return self.sigma if self.runs > 1 else None

    @property
    def half(self) -> float | None:
        """Half its 95 % confidence interval; None for a single run."""
        return half_interval(self.sigma, self.runs)


def mean_of(values: Sequence[float]) -> Mean:
    """Of at least one value."""
    sigma = stdev(map(float, values)) if len(values) > 1 else 0.0
    return Mean(fmean(values), sigma, len(values))


def welch_p(one: Mean, other: Mean) -> float:
    """Two-sided p of Welch's t-test of two means over several runs; 1 or 0 where nothing varies."""
    first, second = (mean.sigma**2 / mean.runs for mean in (one, other))
    if not first + second:
        return float(one.mean == other.mean)
    freedom = (first + second) ** 2 / (first**2 / (one.runs - 1) + second**2 / (other.runs - 1))
    return _p_of((one.mean - other.mean) / math.sqrt(first + second), freedom)


def with_intervals(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the table comparison with interval and p values; None where there is one pair.

    ``ci95_low`` and ``ci95_high`` are the 95 % confidence interval of the paired difference and
    ``paired_p`` its two-sided p value, both from t with pairs - 1 degrees of freedom;
    ``welch_p`` is the two-sided p value of Welch's test.
    """
    return [
        {
            **dict.fromkeys(STATISTICS_COLUMNS),
            **row,
            **_paired(row),
            "welch_p": None if row["welch_t"] is None else _p_of(row["welch_t"], row["welch_df"]),
        }
        for row in rows
    ]


def half_interval(sigma: float | None, runs: int) -> float | None:
    """Half the 95 % confidence interval of a mean over few runs; None where there is one run."""
    from scipy.special import stdtrit

    if sigma is None or runs < 2:
        return None
    return float(stdtrit(runs - 1, 0.5 + CONFIDENCE / 2)) * sigma / math.sqrt(runs)


def _paired(row: Mapping[str, Any]) -> dict[str, float | None]:
    difference, sigma, pairs = row["difference"], row["difference_sigma"], row["pairs"]
    if (half := half_interval(sigma, pairs)) is None:
        return {"ci95_low": None, "ci95_high": None, "paired_p": None}
    error = sigma / math.sqrt(pairs)
    p_value = _p_of(difference / error, pairs - 1) if sigma > 0 else None
    return {"ci95_low": difference - half, "ci95_high": difference + half, "paired_p": p_value}


def _p_of(t: float, freedom: float) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(t)))
