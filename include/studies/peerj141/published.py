"""The figures that PeerJ CS 141 printed in Tables 3-6: means of three runs each.

Every file ``peerj_cs_141_*.csv`` beside this module is read, so a further table needs only its
file. Columns: table, pattern, controller, btu_min (empty where a figure has none), metric, mean,
unit (percent or cost) and sigma (empty, or left out, where it was not copied).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from include.files.whole import csv_rows
from include.model.errors import StoreError
from include.results.reports.comparison import COMPLIANCE, COST, PublishedFigure

FOLDER = Path(__file__).parent
SOURCE = "PeerJ CS 141 (means of three runs)"

_CONTROLLERS: Mapping[str, str] = {
    "btu": "btu",
    "btu-runtime": "btu",
    "threshold": "threshold",
    "threshold-peerj": "threshold",
    "threshold-preprint": "threshold",
}
"""Our controllers to the approach of the paper that they stand for."""

METRICS = (*COMPLIANCE, *COST)
"""Rows of the published tables, in their order."""
KINDS = ("compliance", "resource cost", "total cost")
"""What a metric may be, in the order of the limits of errors."""

NOT_ALWAYS = ("btu_min", "sigma")

CellKey = tuple[str, str, float | None, str]
"""Pattern, approach of the paper, BTU in minutes and metric."""


def published_figure(
    controller: str, pattern: str, btu_min: float | None, metric: str
) -> PublishedFigure | None:
    """The printed figure of one cell; None where the paper has none.

    ``controller`` is one of ours. The threshold approach ran once and was priced at three
    BTUs, so its compliance has no BTU: give None.
    """
    approach = approach_of(controller)
    if approach is None:
        return None
    if approach == "threshold" and is_compliance(metric):
        btu_min = None
    return published_cells().get((pattern, approach, btu_min, metric))


def printed(run: Mapping[str, Any], metric: str, btu_min: float) -> PublishedFigure | None:
    """What the paper printed about a run (a row of ``runs``) of its topology, conditions and
    options; a Reference.

    The paper priced a BTU-based run at its own BTU, so there is nothing under another.
    """
    if run["topology"] != "manufacturing" or run["conditions"] or run["variant"]:
        return None
    if pays_by_own_btu(run["controller"]) and btu_min != run["btu_min"]:
        return None
    return published_figure(run["controller"], run["pattern"], btu_min, metric)


def approach_of(controller: str) -> str | None:
    """The approach of the paper that one of our controllers stands for; None for others."""
    return _CONTROLLERS.get(controller)


def pays_by_own_btu(controller: str) -> bool:
    """Whether the paper priced this approach at the BTU that it planned with, and no other."""
    return approach_of(controller) == "btu"


def is_compliance(metric: str) -> bool:
    """Whether a metric is a share of items; the others are costs."""
    return metric.endswith("_compliance")


def error_of(metric: str, printed: float, measured: float) -> float:
    """Measured minus printed: points of compliance, or percent of a printed cost."""
    off = measured - printed
    return off if is_compliance(metric) else off * 100 / printed


def kind_of(metric: str) -> str:
    """One of KINDS."""
    if is_compliance(metric):
        return KINDS[0]
    return KINDS[1] if metric == "resource_cost" else KINDS[2]


@cache
def published_cells(folder: Path = FOLDER) -> Mapping[CellKey, PublishedFigure]:
    """Every printed figure, in the order of the files and their lines.

    Raises StoreError when two rows print different means for one cell.
    """
    cells: dict[CellKey, PublishedFigure] = {}
    for path in sorted(folder.glob("peerj_cs_141_*.csv")):
        for row in csv_rows(path):
            btu_min, sigma = (float(row[name]) if row.get(name) else None for name in NOT_ALWAYS)
            key = (row["pattern"], row["controller"], btu_min, row["metric"])
            figure = PublishedFigure(float(row["mean"]), row["unit"], row["table"], sigma, SOURCE)
            if cells.get(key, figure).mean != figure.mean:
                raise StoreError(f"{path}: two different means for {key}; correct one of them")
            if sigma is not None or key not in cells:
                cells[key] = figure
    return cells
