"""What needs the t distribution: intervals and p values, added to the small table comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

CONFIDENCE = 0.95
STATISTICS_COLUMNS = (
    "pattern", "btu_min", "metric", "controller", "other_controller", "pairs", "mean",
    "other_mean", "difference", "difference_sigma", "ci95_low", "ci95_high", "paired_p",
    "welch_t", "welch_df", "welch_p", "cohens_d", "hedges_g",
)  # fmt: skip


def with_intervals(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the table comparison with interval and p values; None where there is one pair.

    ``ci95_low`` and ``ci95_high`` are the 95 % confidence interval of the paired difference and
    ``paired_p`` its two-sided p value, both from t with pairs - 1 degrees of freedom;
    ``welch_p`` is the two-sided p value of Welch's test.
    """
    return [
        {**dict.fromkeys(STATISTICS_COLUMNS), **row, **_paired(row), "welch_p": _welch_p(row)}
        for row in rows
    ]


def half_interval(sigma: float | None, runs: int) -> float | None:
    """Half the 95 % confidence interval of a mean over few runs; None where there is one run."""
    from scipy.special import stdtrit  # t.ppf of scipy.stats, which takes seconds to import

    if sigma is None or runs < 2:
        return None
    return float(stdtrit(runs - 1, 0.5 + CONFIDENCE / 2)) * sigma / math.sqrt(runs)


def _paired(row: Mapping[str, Any]) -> dict[str, float | None]:
    from scipy.stats import t

    difference, sigma, pairs = row["difference"], row["difference_sigma"], row["pairs"]
    if (half := half_interval(sigma, pairs)) is None:
        return {"ci95_low": None, "ci95_high": None, "paired_p": None}
    error = sigma / math.sqrt(pairs)
    p_value = float(2 * t.sf(abs(difference) / error, pairs - 1)) if sigma > 0 else None
    return {"ci95_low": difference - half, "ci95_high": difference + half, "paired_p": p_value}


def _welch_p(row: Mapping[str, Any]) -> float | None:
    from scipy.stats import t

    if row["welch_t"] is None or row["welch_df"] is None:
        return None
    return float(2 * t.sf(abs(row["welch_t"]), row["welch_df"]))
