"""Measured compliance and cost beside what PeerJ CS 141 printed for the same case."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from include.reproduction.published import Figure, pays_by_own_btu, published_figure

_COMPLIANCE = ("real_time_compliance", "near_real_time_compliance", "relaxed_compliance")
_COST = (
    "resource_cost",
    "real_time_total_cost",
    "near_real_time_total_cost",
    "relaxed_total_cost",
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measured number and the printed one, if there is one. ``unit`` is percent or cost.

    ``own`` is false under a price book that the run was not controlled with.
    """

    run: str
    label: str
    unit: str
    measured: float
    published: float | None
    where: str
    own: bool = True

    @property
    def difference(self) -> float | None:
        """Measured minus published; None where nothing was published."""
        return None if self.published is None else self.measured - self.published


def comparable_runs(runs: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Runs of the paper's topology under its patterns and conditions, as published runs say."""
    return frozenset(
        run["run"] for run in runs if run["topology"] == "manufacturing" and not run["conditions"]
    )


def compare_compliance(
    compliance: Sequence[dict[str, Any]], comparable: Container[str]
) -> Iterator[Comparison]:
    """Overall compliance of every run, in percent of sampled items.

    Only ``comparable`` runs are held against the paper.
    """
    for row in compliance:
        if row["scope"] != "overall":
            continue
        case = (row["controller"], row["pattern"], row["btu_min"])
        for metric in _COMPLIANCE:
            found = published_figure(*case, metric) if row["run"] in comparable else None
            label = _label(metric.removesuffix("_compliance"))
            yield _compared(row["run"], label, "percent", row[f"{metric}_percent"], found)


def compare_cost(
    cost: Sequence[dict[str, Any]], comparable: Container[str]
) -> Iterator[Comparison]:
    """Cost of every run under every price book; ``comparable`` runs are held against the paper.

    The paper priced a BTU-based run at its own BTU, so under another price book there is
    nothing to compare it with.
    """
    for row in cost:
        book_min = row["price_book_btu_min"]
        priced = not pays_by_own_btu(row["controller"]) or book_min == row["btu_min"]
        for metric in _COST:
            found = (
                published_figure(row["controller"], row["pattern"], book_min, metric)
                if priced and row["run"] in comparable
                else None
            )
            label = f"{_label(metric.removesuffix('_cost'))}, BTU {book_min:g} min"
            compared = _compared(row["run"], label, "cost", row[metric], found)
            yield replace(compared, own=book_min == row["btu_min"])


def _compared(run: str, label: str, unit: str, measured: float, found: Figure | None) -> Comparison:
    published = found.mean if found else None
    return Comparison(run, label, unit, measured, published, found.table if found else "")


def _label(metric: str) -> str:
    words = metric.replace("near_real_time", "near real-time").replace("real_time", "real-time")
    return words.replace("_", " ").capitalize()
