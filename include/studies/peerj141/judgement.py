"""Whether the paper is reproduced: the controllers that stand for its prototype, as a whole.

The mean absolute error over all cells of a kind decides: the upper end of its interval over at
least 24 seeds must be within the limit. A part of the cells, measured where runs were left out,
does not decide. Nor do single ones: with sigmas as small as the published ones some error is
significant wherever a simulation is not the testbed itself, relevant or not. Those cells are named
and counted (include/studies/peerj141/verdict.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from include.results.tables.staged import Rows, gathered
from include.studies.peerj141.calibration import FITTED, JUDGING_SEEDS, LIMITS
from include.studies.peerj141.draws import interval
from include.studies.peerj141.published import KINDS, approach_of, kind_of, published_cells
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
    within the limit, and None for a part of the stored figures or fewer than 24 seeds, as ``why``
    says. ``judged`` is true for the controllers that stand for the prototype of the paper; the
    others are shown beside them.
    """
    groups = gathered(
        ((_patterns(row["pattern"]), row["controller"], row["kind"]), row) for row in verdict
    )
    return [
        _judged([row["errors"] for row in own], limits[KINDS.index(kind)], printed)
        | {
            "patterns": patterns,
            **about(own),
            "outside": sum(not row["inside"] for row in own),
            "judged": controller in _prototype(),
        }
        for (patterns, controller, kind), own in groups.items()
        for fitted in [LIMITS if patterns == "fitted" else {}]
        for limits in [fitted.get(controller, HELD_OUT_LIMITS)]
        for printed in [_printed()[patterns, approach_of(controller), kind]]
    ]


def _judged(errors: list[dict[int, float]], limit: float, printed: int) -> dict[str, Any]:
    sure, seeds, why = interval(errors), len(set.intersection(*map(set, errors))), ""
    if len(errors) < printed:
        why = f"{len(errors)} of {printed} stored figures do not judge it, all do"
    elif sure is None or seeds < JUDGING_SEEDS:
        why = f"{seeds} seeds do not judge it, {JUDGING_SEEDS} do"
    return {
        "seeds": seeds,
        "interval_low": sure and sure.low,
        "interval_high": sure and sure.high,
        "limit": limit,
        "holds": sure.high <= limit if sure and not why else None,
        "why": why,
    }


@cache
def _printed() -> Counter[tuple[str, str | None, str]]:
    """How many figures of the paper are stored, by patterns, approach and kind."""
    return Counter(
        (_patterns(pattern), approach, kind_of(metric))
        for pattern, approach, _, metric in published_cells()
    )


def _patterns(pattern: str) -> str:
    return "fitted" if pattern in FITTED else "held out"


def shortfalls(judgement: Rows) -> list[str]:
    """Why the paper is not reproduced, a sentence each; none when it is."""
    measured = {(row["patterns"], row["controller"], row["kind"]) for row in judgement}
    return [
        f"{controller}, {kind} on {patterns} patterns: no stored figure was measured"
        for controller in _prototype()
        for patterns, approach, kind in _printed()
        if approach == approach_of(controller) and (patterns, controller, kind) not in measured
    ] + [_shortfall(row) for row in judgement if row["judged"] and not row["holds"]]


def _prototype() -> tuple[str, str]:
    """The controllers that stand for the prototype of the paper."""
    return controllers()[0], "threshold"


def _shortfall(row: Mapping[str, Any]) -> str:
    about = f"{row['controller']}, {row['kind']} on {row['patterns']} patterns: "
    if row["holds"] is None:
        return f"{about}{row['why']}"
    return (
        f"{about}mean absolute error {row['mean_absolute_error']:.2f} {row['unit']}, surely below "
        f"{row['interval_high']:.2f}, allowed are {row['limit']:g}"
    )
