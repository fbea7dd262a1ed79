"""How far apart two means of a few runs each may lie when nothing but chance separates them.

The published figures are means of three runs, and so are ours. Were both drawn from one and
the same system, their difference would have the variance sigma_p^2 / 3 + sigma_m^2 / runs. A
sigma of three runs says little by itself (0 is printed four times), so both are pooled over the
cells of one controller and kind of metric. A cell is inside when its difference is no larger
than 19 of 20 such differences are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from include.model.errors import GateFailed
from include.studies.base import Rows

PUBLISHED_RUNS = 3
CONFIDENCE = 0.95
"""Of a single cell: one in twenty lies outside although nothing is wrong."""
HALF_POINT = 0.5
"""Compliance is printed in whole percents, so a printed mean may be off by this much."""


def tolerance(rows: Rows) -> float:
    """The largest error that chance explains, for verdict rows of one controller and kind.

    In the rows' ``error_unit``: points of compliance, percent of the published cost. Sigmas are
    taken from the cells that have one; without any on one side, those of the other stand for
    both. Raises GateFailed when no cell has one (runs of a single seed).
    """
    from scipy.stats import t

    printed = [(row, row["published_sigma"]) for row in rows if row["published_sigma"] is not None]
    measured = [(row, row["measured_sigma"]) for row in rows if row["measured_sigma"] is not None]
    if not printed and not measured:
        raise GateFailed(
            "no published cell can be judged: neither side has a standard deviation. Reproduce "
            "with more than one seed."
        )
    runs = min(row["runs"] for row in rows)
    parts = [
        (_pooled(known or other) / count, _freedom(known or other, count))
        for known, other, count in (
            (printed, measured, PUBLISHED_RUNS),
            (measured, printed, runs),
        )
    ]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return _rounding(rows)
    # Welch and Satterthwaite
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    half = float(t.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.sqrt(variance)
    return half + _rounding(rows)


def _pooled(known: Sequence[tuple[Mapping[str, Any], float]]) -> float:
    """The pooled variance in the unit of the errors."""
    return fmean((sigma * _scale(row)) ** 2 for row, sigma in known)


def _freedom(known: Sequence[tuple[Mapping[str, Any], float]], runs: int) -> int:
    """Cells of one pattern and BTU are of the same runs and count once."""
    columns = {(row["pattern"], row["btu_min"]) for row, _ in known}
    return len(columns) * max(1, runs - 1)


def _scale(row: Mapping[str, Any]) -> float:
    return 1.0 if row["error_unit"] == "points" else 100 / float(row["published_mean"])


def _rounding(rows: Rows) -> float:
    return HALF_POINT if rows[0]["error_unit"] == "points" else 0.0
