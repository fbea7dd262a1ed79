"""Whether the paper is reproduced: the controllers that stand for its prototype, as a whole.

The mean absolute error over all cells of a kind decides, against limits that were set before
anything was fitted. Single cells do not: with sigmas as small as the published ones some error
is significant wherever a simulation is not the testbed itself, relevant or not. Those cells are
named and counted (include/studies/peerj141/tolerance.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from statistics import fmean
from typing import Any

from include.studies.peerj141.calibration import FITTED, LIMITS
from include.studies.peerj141.draws import cell_of, errors_by_seed, spread
from include.studies.peerj141.specs import controllers
from include.studies.results import Rows

HELD_OUT_LIMITS = (1.5, 6.0, 6.0)
"""Points, percent of resource and of total cost on patterns that were not fitted."""
KINDS = ("compliance", "resource cost", "total cost")

JUDGEMENT_COLUMNS = (
    "patterns", "controller", "kind", "unit", "mean_absolute_error", "interval_low",
    "interval_high", "limit", "seeds", "share_of_draws", "cells", "outside", "judged", "holds",
)  # fmt: skip


def judge(verdict: Rows, metrics: Rows = ()) -> list[dict[str, Any]]:
    """One row per patterns (fitted, held out), controller and kind that has published cells.

    ``holds`` is that the mean absolute error is within the limit. ``judged`` is true for the
    controllers that stand for the prototype of the paper; the others are shown beside them.
    ``metrics`` are the figures of every run: from them comes the 95 % interval of the error,
    ``share_of_draws``, the share of draws of three seeds that keep the limit, and ``draws``,
    whether each does. They are None with fewer than four seeds.
    """
    by_seed = errors_by_seed(verdict, metrics)
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in verdict:
        patterns = "fitted" if row["pattern"] in FITTED else "held out"
        groups.setdefault((patterns, row["controller"], row["kind"]), []).append(row)
    return [
        _spread_of([by_seed[cell_of(row)] for row in own] if by_seed else [{}], limit)
        | {
            "patterns": patterns,
            "controller": controller,
            "kind": kind,
            "unit": own[0]["error_unit"],
            "mean_absolute_error": (error := fmean(abs(row["error"]) for row in own)),
            "limit": limit,
            "cells": len(own),
            "outside": sum(not row["inside"] for row in own),
            "judged": controller in judged_controllers(),
            "holds": error <= limit,
        }
        for (patterns, controller, kind), own in groups.items()
        for limit in [_limits(patterns, controller)[KINDS.index(kind)]]
    ]


def share_of_draws(judgement: Rows) -> float | None:
    """The share of draws of three seeds by which the paper would count as reproduced.

    None when there are too few seeds to draw from.
    """
    judged = [row["draws"] for row in judgement if row["judged"]]
    if not judged or any(draws is None for draws in judged):
        return None
    return float(reduce(lambda one, other: one & other, judged).mean())


def _spread_of(errors: list[dict[int, float]], limit: float) -> dict[str, Any]:
    found = spread(errors, limit)
    return {
        "seeds": min(map(len, errors)),
        "interval_low": found and found.low,
        "interval_high": found and found.high,
        "share_of_draws": found and found.share,
        "draws": found and found.draws,
    }


def judged_controllers() -> tuple[str, str]:
    """Those that stand for the prototype and for its baseline."""
    return controllers()[0], "threshold"


def shortfalls(judgement: Rows) -> list[str]:
    """Why the paper is not reproduced, a sentence each; none when it is."""
    return [
        f"{row['controller']}, {row['kind']} on {row['patterns']} patterns: mean absolute error "
        f"{row['mean_absolute_error']:.2f} {row['unit']}, allowed are {row['limit']:g}"
        for row in judgement
        if row["judged"] and not row["holds"]
    ]


def _limits(patterns: str, controller: str) -> tuple[float, float, float]:
    return LIMITS[controller] if patterns == "fitted" else HELD_OUT_LIMITS
