"""The evaluation of Borkowski et al., PVLDB 12(7), again: three filters on three workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

from include.experiment.spec import RunSpec
from include.results.reports.comparison import PublishedFigure
from include.studies.base import (
    ClaimCase,
    Predicate,
    Study,
    StudyData,
    ask,
    cells_of,
    check_claims,
    read_claims,
    runs_of,
)
from include.studies.page import summary as claims_summary
from include.studies.pvldb127.economy import break_even
from include.studies.pvldb127.errata import find_errata
from include.studies.pvldb127.metrics import PvldbMetrics, metrics_of, read_run, welch_p
from include.studies.pvldb127.predicates import PREDICATES
from include.studies.pvldb127.published import (
    FILTERS,
    FITTED,
    METRICS,
    RUNS,
    SCENARIOS,
    TOLERANCE_PERCENT,
    UNITS,
    WITHHELD,
    published,
)
from include.studies.results import Rows, StudyResults

CLAIMS = read_claims(Path(__file__).parent)
PAIRS = tuple(combinations(FILTERS.values(), 2))


def runs(seeds: Sequence[int] | None = None) -> list[RunSpec]:
    """Every run of the evaluation; its spec has 20 seeds."""
    return runs_of("kalman", ["kalman_evaluation"], seeds)


def evaluate(measured: StudyData) -> StudyResults:
    """Everything that the paper tabulates or says, of what was measured."""
    return hold_against_paper(metrics_of([(run, read_run(measured, run)) for run in measured.runs]))


def hold_against_paper(metrics: PvldbMetrics) -> StudyResults:
    """Tables of the paper and their tests, measured beside printed; claims; what it misprints."""
    tables = {
        "claims": claims_of(metrics),
        "results": results(metrics),
        "tests": welch_tests(metrics),
        "changes": changes(metrics),
        "break_even": break_even(metrics),
        "cells": cells(metrics),
    }
    return StudyResults(tables=tables, errata=find_errata(published()))


def claims_of(metrics: PvldbMetrics) -> Rows:
    """One row per claim; those whose runs are not there are unknown.

    ``without_square`` is the answer on the other two scenarios: Square's table is withheld.
    """
    others = metrics.only(*(one for one in SCENARIOS if one != WITHHELD))

    def without_square(predicate: Predicate, _: ClaimCase) -> Mapping[str, Any]:
        return {"without_square": ask(predicate, others)[0].value}

    return check_claims(
        CLAIMS, PREDICATES, lambda _: [ClaimCase((metrics,))], beside=without_square
    )


def cells(metrics: PvldbMetrics) -> Rows:
    """Every measured figure, for ``cells.csv``: of Pyramid, Square and lab."""
    names = {name: controller for controller, name in FILTERS.items()}
    return cells_of(
        (scenario, names[name], UNITS[metric], cell.values)
        for (scenario, name, metric), cell in metrics.cells.items()
    )


def summary(results: StudyResults) -> str:
    """For a terminal: claims, without Square too, and cells by whether they were fitted."""
    lines = [claims_summary(results)]
    asked = [row for row in results.claims if row["without_square"]]
    held = sum(row["without_square"] == "yes" for row in asked)
    lines.append(f"On Pyramid and lab alone {held} of {len(asked)} claims hold.")
    for kind, is_fitted in (("fitted", True), ("unseen", False)):
        cells = [
            row["inside"] for row in results.tables["results"]
            if row["inside"] is not None and (row["scenario"] == FITTED) is is_fitted
        ]  # fmt: skip
        if cells:
            lines.append(f"Printed cells, {kind}: {sum(cells)} of {len(cells)} within tolerance.")
    return "\n".join(lines)


def results(metrics: PvldbMetrics) -> Rows:
    """One row per cell of Tables 3 to 5; the published columns are empty where none is known."""
    rows = []
    for scenario, metric, name in product(metrics.scenarios(), METRICS, FILTERS.values()):
        cell = metrics.cells[scenario, name, metric]
        row = {
            "scenario": scenario, "metric": metric, "filter": name,
            "runs": len(cell.values), "mean": cell.mean, "sigma": cell.sigma,
        }  # fmt: skip
        rows.append(row | _beside(published().get((scenario, name, metric)), row))
    return rows


def _beside(figure: PublishedFigure | None, row: Mapping[str, Any]) -> dict[str, Any]:
    if figure is None:
        return dict.fromkeys(
            ("published_mean", "published_sigma", "off_percent", "tolerance_percent", "inside")
        )
    off = 100 * (row["mean"] / figure.mean - 1)
    tolerance = TOLERANCE_PERCENT[row["metric"]]
    return {
        "published_mean": figure.mean, "published_sigma": figure.sigma, "off_percent": off,
        "tolerance_percent": tolerance, "inside": abs(off) <= tolerance,
    }  # fmt: skip


def welch_tests(metrics: PvldbMetrics) -> Rows:
    """Welch's t-test of every pair of filters, of what was measured and of what is printed."""
    rows = []
    for scenario, metric, pair in product(metrics.scenarios(), METRICS, PAIRS):
        own = [metrics.cells[scenario, name, metric].summary for name in pair]
        figures = [published().get((scenario, name, metric)) for name in pair]
        printed = [(figure.mean, figure.sigma or 0.0, RUNS) for figure in figures if figure]
        rows.append(
            {
                "scenario": scenario,
                "metric": metric,
                "filter": pair[0],
                "other_filter": pair[1],
                "welch_p": welch_p(*own) if min(n for *_, n in own) > 1 else None,
                "published_welch_p": welch_p(*printed) if len(printed) == 2 else None,
            }
        )
    return rows


def changes(metrics: PvldbMetrics) -> Rows:
    """Percent changes of EKF against GW and PURE, measured and from the printed tables."""
    rows = []
    for scenario, metric, other in product(metrics.scenarios(), METRICS, ("GW", "PURE")):
        ekf, base = (published().get((scenario, name, metric)) for name in ("EKF", other))
        rows.append(
            {
                "scenario": scenario,
                "metric": metric,
                "against": other,
                "change_percent": metrics.change_percent(scenario, metric, other),
                "published_percent": 100 * (ekf.mean / base.mean - 1) if ekf and base else None,
            }
        )
    return rows


STUDY = Study(
    name="pvldb127",
    title="Minimizing Cost by Reducing Scaling Operations (PVLDB 12, 7)",
    experiment="kalman",
    runs=runs,
    evaluate=evaluate,
    cell_of=lambda run: (run.pattern, run.controller),
    summary=summary,
)
