"""How far from a printed mean chance alone may lead: what the paper's own runs scatter by.

A printed figure is the mean of three runs, so the system behind it may lie off by what a t
distribution with the printed sigmas says, and by what rounding hides. A sigma of three runs says
little by itself (0 is printed four times), so they are pooled over the cells of one controller
and kind of metric. What our simulator scatters by has no part: a noisier one would be allowed
to be further off. Its own noise is in the interval of the mean errors (draws.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from include.model.errors import GateFailed
from include.studies.results import Rows

PUBLISHED_RUNS = 3
CONFIDENCE = 0.95
"""Of a single cell: one in twenty lies outside although nothing is wrong."""
HALF_POINT = 0.5
"""Compliance is printed in whole percents, so a printed mean may be off by this much."""
HALF_CENT = 0.005
"""Costs are printed with two decimals."""


def tolerance(rows: Rows) -> float:
    """The largest error that chance explains, for verdict rows of one controller and kind.

    In the rows' ``error_unit``: points of compliance, percent of the published cost. Sigmas are
    taken from the cells that have one. Raises GateFailed when none has.
    """
    from scipy.stats import t

    printed = [row for row in rows if row["published_sigma"] is not None]
    if not printed:
        raise GateFailed(
            f"no published cell of {rows[0]['controller']}, {rows[0]['kind']}, can be judged: none "
            f"has a standard deviation. Add the printed ones to a peerj_cs_141_*.csv file."
        )
    variance = fmean((row["published_sigma"] * _scale(row)) ** 2 for row in printed)
    # Cells of one pattern and BTU are of the same runs and count once.
    columns = {(row["pattern"], row["btu_min"]) for row in printed}
    freedom = len(columns) * (PUBLISHED_RUNS - 1)
    half = float(t.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.sqrt(variance / PUBLISHED_RUNS)
    return half + _rounding(rows)


def _scale(row: Mapping[str, Any]) -> float:
    return 1.0 if row["error_unit"] == "points" else 100 / float(row["published_mean"])


def _rounding(rows: Rows) -> float:
    if rows[0]["error_unit"] == "points":
        return HALF_POINT
    return max(HALF_CENT * _scale(row) for row in rows)
