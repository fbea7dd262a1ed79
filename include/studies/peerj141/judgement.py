"""Whether the paper is reproduced: the controllers that stand for its prototype, as a whole.

The mean absolute error over all cells of a kind decides: the upper end of its interval over at
least 24 seeds must be within the limit. Single cells do not: with sigmas as small as the published
ones some error is significant wherever a simulation is not the testbed itself, relevant or not.
Those cells are named and counted (include/studies/peerj141/verdict.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.results.tables.staged import Rows, gathered
from include.studies.peerj141.calibration import FITTED, JUDGING_SEEDS, LIMITS
from include.studies.peerj141.draws import interval
from include.studies.peerj141.published import KINDS
from include.studies.peerj141.specs import controllers
from include.studies.peerj141.verdict import about

HELD_OUT_LIMITS = (1.5, 6.0, 6.0)
"""Points, percent of resource and of total cost of what was not fitted."""

JUDGEMENT_COLUMNS = (
    "patterns", "controller", "kind", "unit", "mean_absolute_error", "interval_low",
    "interval_high", "limit", "seeds", "cells", "outside", "judged", "holds",
)  # fmt: skip


def judge(verdict: Rows) -> list[dict[str, Any]]:
    """One row per patterns (fitted, held out), controller and kind that has published cells.

    The 95 % interval of the error is None with fewer than four seeds. ``holds`` is that it ends
    within the limit, and None with fewer than 24 seeds. ``judged`` is true for the controllers that
    stand for the prototype of the paper; the others are shown beside them.
    """
    groups = gathered(
        (
            ("fitted" if row["pattern"] in FITTED else "held out", row["controller"], row["kind"]),
            row,
        )
        for row in verdict
    )
    return [
        _judged([row["errors"] for row in own], limits[KINDS.index(kind)])
        | {
            "patterns": patterns,
            **about(own),
            "outside": sum(not row["inside"] for row in own),
            "judged": controller in _prototype(),
        }
        for (patterns, controller, kind), own in groups.items()
        for fitted in [LIMITS if patterns == "fitted" else {}]
        for limits in [fitted.get(controller, HELD_OUT_LIMITS)]
    ]


def _judged(errors: list[dict[int, float]], limit: float) -> dict[str, Any]:
    sure, seeds = interval(errors), min(map(len, errors))
    return {
        "seeds": seeds,
        "interval_low": sure and sure.low,
        "interval_high": sure and sure.high,
        "limit": limit,
        "holds": sure.high <= limit if sure and seeds >= JUDGING_SEEDS else None,
    }


def shortfalls(judgement: Rows) -> list[str]:
    """Why the paper is not reproduced, a sentence each; none when it is."""
    measured = {row["controller"] for row in judgement}
    return [
        f"{name}: no stored figure of the paper was measured"
        for name in _prototype()
        if name not in measured
    ] + [_shortfall(row) for row in judgement if row["judged"] and not row["holds"]]


def _prototype() -> tuple[str, str]:
    """The controllers that stand for the prototype of the paper."""
    return controllers()[0], "threshold"


def _shortfall(row: Mapping[str, Any]) -> str:
    about = f"{row['controller']}, {row['kind']} on {row['patterns']} patterns: "
    if row["holds"] is None:
        return f"{about}{row['seeds']} seeds do not judge it, {JUDGING_SEEDS} do"
    return (
        f"{about}mean absolute error {row['mean_absolute_error']:.2f} {row['unit']}, surely below "
        f"{row['interval_high']:.2f}, allowed are {row['limit']:g}"
    )
