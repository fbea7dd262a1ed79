"""The figures that PeerJ CS 141 printed in Tables 3 and 5: means of three runs each."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_RESULTS = Path(__file__).with_name("peerj_cs_141_results.csv")

_CONTROLLERS: Mapping[str, str] = {
    "btu": "btu",
    "btu-runtime": "btu",
    "threshold": "threshold",
    "threshold-peerj": "threshold",
    "threshold-preprint": "threshold",
}
"""Our controllers to the approach of the paper that they stand for."""

METRICS: tuple[str, ...] = (
    "real_time_compliance",
    "near_real_time_compliance",
    "relaxed_compliance",
    "resource_cost",
    "real_time_total_cost",
    "near_real_time_total_cost",
    "relaxed_total_cost",
)
"""Rows of the published tables, in their order."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed figure and where it stands. ``unit`` is percent or cost."""

    mean: float
    unit: str
    table: str


def published_figure(
    controller: str, pattern: str, btu_min: float | None, metric: str
) -> Figure | None:
    """The printed figure of one cell; None where the paper has none.

    ``controller`` is one of ours. The threshold approach ran once and was priced at three
    BTUs, so its compliance has no BTU: give None.
    """
    approach = _CONTROLLERS.get(controller)
    if approach is None:
        return None
    if approach == "threshold" and metric.endswith("_compliance"):
        btu_min = None
    return _figures().get((approach, pattern, btu_min, metric))


def pays_by_own_btu(controller: str) -> bool:
    """Whether the paper priced this approach at the BTU that it planned with, and no other."""
    return _CONTROLLERS.get(controller) == "btu"


@cache
def _figures() -> Mapping[tuple[str, str, float | None, str], Figure]:
    with _RESULTS.open(encoding="utf-8", newline="") as file:
        return {
            (
                row["controller"],
                row["pattern"],
                float(row["btu_min"]) if row["btu_min"] else None,
                row["metric"],
            ): Figure(float(row["mean"]), row["unit"], row["table"])
            for row in csv.DictReader(file)
        }
