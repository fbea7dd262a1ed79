"""Whether the paper is reproduced: the controllers that stand for its prototype, as a whole.

The mean absolute error over all cells of a kind decides, against limits that were set before
anything was fitted. Single cells do not: with sigmas as small as the published ones some error
is significant wherever a simulation is not the testbed itself, relevant or not. Those cells are
named and counted (include/studies/peerj141/tolerance.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from include.studies.base import Rows
from include.studies.peerj141.calibration import FITTED, LIMITS
from include.studies.peerj141.specs import controllers

HELD_OUT_LIMITS = (1.5, 6.0, 6.0)
"""Points, percent of resource and of total cost on patterns that were not fitted."""
KINDS = ("compliance", "resource cost", "total cost")

JUDGEMENT_COLUMNS = (
    "patterns", "controller", "kind", "unit", "mean_absolute_error", "limit", "cells", "outside",
    "judged", "holds",
)  # fmt: skip


def judge(verdict: Rows) -> list[dict[str, Any]]:
    """One row per patterns (fitted, held out), controller and kind that has published cells.

    ``holds`` is that the mean absolute error is within the limit. ``judged`` is true for the
    controllers that stand for the prototype of the paper; the others are shown beside them.
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in verdict:
        patterns = "fitted" if row["pattern"] in FITTED else "held out"
        groups.setdefault((patterns, row["controller"], row["kind"]), []).append(row)
    return [
        {
            "patterns": patterns,
            "controller": controller,
            "kind": kind,
            "unit": own[0]["error_unit"],
            "mean_absolute_error": (error := fmean(abs(row["error"]) for row in own)),
            "limit": (limit := _limits(patterns, controller)[KINDS.index(kind)]),
            "cells": len(own),
            "outside": sum(not row["inside"] for row in own),
            "judged": controller in judged_controllers(),
            "holds": error <= limit,
        }
        for (patterns, controller, kind), own in groups.items()
    ]


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
