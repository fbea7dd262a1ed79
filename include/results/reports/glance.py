"""What came of an experiment at a glance: one row per case, the mean over its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from operator import itemgetter
from statistics import fmean
from typing import Any

from include.results.reports.tournament import END_TO_END_SHARE, END_TO_END_TOTAL, controller_name
from include.results.tables.staged import Row, grouped

LOAD = ("topology", "pattern", "conditions", "btu_min")
CASE = (*LOAD, "controller", "variant")
MOST_CASES = 12
"""As many as fit on a screen below the heading; more are folded."""


def glance_of(outcomes: Sequence[Row], *, end_to_end: bool = False) -> list[dict[str, Any]]:
    """Cases by load, the cheapest first (``end_to_end``: by that total); empty where there is one.

    ``load`` is what the loads differ in, ``cost`` the total, ``share`` the strict
    near real-time compliance in percent, ``age_s`` the 95th percentile of the age; all are means
    over seeds, None where a run has none.
    """
    cases = list(grouped(outcomes, itemgetter(*CASE)).values())
    if len(cases) == 1:
        return []
    firsts = [rows[0] for rows in cases]
    telling = _telling(firsts, LOAD) or ["pattern"]
    of_controller = _telling(firsts, ("controller", "variant"))
    glance = [
        {
            "load": _load(rows[0], telling),
            "controller": controller_name(rows[0])
            if "variant" in of_controller
            else rows[0]["controller"],
            "seeds": len(rows),
            "cost": _mean(rows, "strict_total_cost"),
            "share": _mean(rows, "strict_near_real_time_compliance_percent"),
            "end_to_end_cost": _mean(rows, END_TO_END_TOTAL),
            "end_to_end_share": _mean(rows, END_TO_END_SHARE),
            "age_s": _mean(rows, "age_p95_ms", 1000.0),
        }
        for rows in cases
    ]
    by = "end_to_end_cost" if end_to_end else "cost"
    return sorted(glance, key=lambda case: (case["load"], inf if case[by] is None else case[by]))


def _telling(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Those of ``names`` that differ, and of these no more than it takes to tell all apart."""
    differ = [name for name in names if len({row[name] for row in rows}) > 1]
    kinds = len({tuple(row[name] for name in names) for row in rows})
    for name in differ:
        if len({row[name] for row in rows}) == kinds:
            return [name]
    return differ


def _load(row: Row, names: Sequence[str]) -> str:
    texts = [f"BTU {row[name]:g} min" if name == "btu_min" else row[name] for name in names]
    return ", ".join(filter(None, texts))


def _mean(rows: Sequence[Row], name: str, divided_by: float = 1.0) -> float | None:
    values = [row[name] for row in rows]
    return None if None in values else fmean(values) / divided_by
