"""Everything that a reproduction says, from the staged tables and the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.results.reports.statistics import with_intervals
from include.studies.base import StudyData
from include.studies.drift import baselines, drift, moved_runs, run_digests, verdict_of
from include.studies.peerj141.claims import claims_of
from include.studies.peerj141.errata import columns, find_errata, implied_items
from include.studies.peerj141.judgement import judge, shortfalls
from include.studies.peerj141.metrics import mean_curves, metrics_of_paper, metrics_of_runs
from include.studies.peerj141.published import METRICS, CellKey, approach_of, published_cells
from include.studies.peerj141.specs import BASELINE, BTUS_MIN, controllers, patterns
from include.studies.peerj141.verdict import summary, verdict
from include.studies.results import Rows, StudyResults


@dataclass(frozen=True, kw_only=True)
class Findings(StudyResults):
    """Results with what the page shows beside its tables.

    ``drift_sentences`` has one sentence per baseline.
    """

    runs: int
    errors: Rows
    judgement: Rows
    drift_sentences: tuple[str, ...]
    cell_errata: Mapping[CellKey, str]
    items: Rows
    curves: Mapping[str, Mapping[str, Sequence[tuple[float, float, float, float]]]]

    @property
    def cells(self) -> Rows:
        """Means over seeds."""
        return self.tables["cells"]

    @property
    def verdict(self) -> Rows:
        """Every published cell beside the measured one."""
        return self.tables["verdict"]

    @property
    def drift(self) -> Rows:
        """Every cell beside those of the baselines."""
        return self.tables["drift"]

    @property
    def outside(self) -> list[Mapping[str, Any]]:
        """Published cells that were missed by more than chance explains."""
        return [row for row in self.verdict if not row["inside"]]

    @property
    def shortfalls(self) -> list[str]:
        """Why the paper is not reproduced, a sentence each; none when it is."""
        return shortfalls(self.judgement)

    @property
    def failing(self) -> list[Mapping[str, Any]]:
        """Claims that do not hold for what was measured."""
        return [row for row in self.claims if row["holds"] == "no"]


def find(measured: StudyData) -> Findings:
    """Judge what a reproduction has measured."""
    tables, folder = measured.tables, measured.folder
    published = published_cells()
    cells = sorted(tables["cells"], key=_reading_order)
    judged = verdict(cells, published, tables["metrics"])
    judgement = judge(judged, tables["metrics"])
    digests = run_digests(folder, (row["run"] for row in tables["runs"]))
    shifts = [
        (one, drift(one, cells), moved_runs(one, digests)) for one in baselines(folder, BASELINE)
    ]
    of_btu = [name for name in controllers() if approach_of(name) == "btu"]
    claims = claims_of(
        {name: metrics_of_runs(tables, name) for name in of_btu},
        metrics_of_paper(published, BTUS_MIN),
        patterns(),
    )
    return Findings(
        tables={
            "claims": claims,
            "cells": cells,
            "verdict": judged,
            "judgement": judgement,
            "comparison": sorted(with_intervals(tables["comparison"]), key=_reading_order),
            "elasticity": _with_run(tables["elasticity"], tables["runs"]),
            "drift": [row for _, rows, _ in shifts for row in rows],
        },
        runs=len(tables["runs"]),
        errors=summary(judged),
        judgement=judgement,
        drift_sentences=tuple(verdict_of(one, rows, moved) for one, rows, moved in shifts),
        cell_errata=find_errata(published),
        items=_items(published),
        curves=_curves(tables),
    )


def _reading_order(row: Mapping[str, Any]) -> tuple[int, ...]:
    """Patterns as in Fig. 7, controllers as in the matrix, metrics as in the tables."""
    places = ((patterns(), "pattern"), (controllers(), "controller"), (METRICS, "metric"))
    pattern, controller, metric = (
        list(known).index(row[name]) if row[name] in known else len(known) for known, name in places
    )
    other = row.get("other_controller")
    place = list(controllers()).index(other) if other in controllers() else 0
    return pattern, controller, place, int(row["btu_min"]), metric


def _with_run(rows: Rows, runs: Rows) -> list[dict[str, Any]]:
    about = {row["run"]: row for row in runs}
    names = ("pattern", "controller", "btu_min", "seed")
    return [{**{name: about[row["run"]][name] for name in names}, **row} for row in rows]


def _items(published: Mapping[CellKey, Any]) -> list[dict[str, Any]]:
    """Per published column, how many items of a run its penalty and compliance speak of."""
    rows = []
    for column in columns(published):
        for level, (low, high) in implied_items(published, column).items():
            pattern, approach, btu_min = column
            values = {"pattern": pattern, "controller": approach, "btu_min": btu_min}
            rows.append({**values, "level": level, "low_items": low, "high_items": high})
    return rows


def _curves(
    tables: Mapping[str, Rows],
) -> dict[str, dict[str, Sequence[tuple[float, float, float, float]]]]:
    """Per pattern, the curves of the policies that Figs. 8-11 show."""
    names = {
        row["run"]: [(row["pattern"], label)]
        for row in tables["runs"]
        if (label := _label(row)) is not None
    }
    means = mean_curves(tables["timeline"], names)
    return {
        pattern: {label: means[own, label] for own, label in sorted(means) if own == pattern}
        for pattern in patterns()
        if any(own == pattern for own, _ in means)
    }


def _label(run: Mapping[str, Any]) -> str | None:
    if run["controller"] == controllers()[0]:
        return f"{run['controller']} BTU{run['btu_min']:g}"
    return "threshold" if run["controller"] == "threshold" else None
