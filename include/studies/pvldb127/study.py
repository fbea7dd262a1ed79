"""The evaluation of Borkowski et al., PVLDB 12(7), again: three filters on three workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import Any

from include.experiment.spec import RunSpec
from include.results.reports.statistics import Mean, welch_p
from include.results.tables.staged import Rows
from include.studies.base import Cell, CellValue, ClaimCase, Predicate, Study, StudyData, ask
from include.studies.page import StudyResults
from include.studies.pvldb127.economy import break_even
from include.studies.pvldb127.errata import find_errata
from include.studies.pvldb127.metrics import PvldbMetrics, metrics_of, read_run
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

PAIRS = tuple(combinations(FILTERS.values(), 2))


class Pvldb127Study(Study):
    """Tables of the paper and their tests, measured beside printed; claims; what it misprints."""

    name = "pvldb127"
    title = "Minimizing Cost by Reducing Scaling Operations (PVLDB 12, 7)"
    experiment = "kalman"
    specs = ("kalman_evaluation",)

    def read(self, measured: StudyData) -> PvldbMetrics:
        return metrics_of([(run, read_run(measured, run)) for run in measured.runs])

    def results_of(self, metrics: PvldbMetrics) -> StudyResults:
        return replace(super().results_of(metrics), errata=find_errata(published()))

    def tables(self, metrics: PvldbMetrics) -> Mapping[str, Rows]:
        return {
            "results": results(metrics),
            "tests": welch_tests(metrics),
            "changes": changes(metrics),
            "break_even": break_even(metrics),
        }

    def beside(self, predicate: Predicate, case: ClaimCase) -> Mapping[str, Any]:
        """The answer on the other two scenarios: Square's table is withheld."""
        (metrics,) = case.of
        others = tuple(scenario for scenario in SCENARIOS if scenario != WITHHELD)
        return {"without_square": ask(predicate, replace(metrics, asked=others))[0].value}

    def cell_values(self, metrics: PvldbMetrics) -> Iterator[CellValue]:
        """Every measured figure of Pyramid, Square and lab."""
        names = {name: controller for controller, name in FILTERS.items()}
        for (scenario, name, metric), values in metrics.cells.items():
            for value in values:
                yield scenario, names[name], UNITS[metric], value

    def cell_of(self, run: RunSpec) -> Cell:
        return run.pattern, run.controller

    def summary(self, results: StudyResults) -> str:
        """For a terminal: claims, without Square too, and cells by whether they were fitted."""
        lines = [super().summary(results)]
        asked = [row for row in results.claims if row["without_square"]]
        held = sum(row["without_square"] == "yes" for row in asked)
        lines.append(f"On Pyramid and lab alone {held} of {len(asked)} claims hold.")
        for kind, is_fitted in (("fitted", True), ("not fitted to", False)):
            cells = [
                row["inside"] for row in results.tables["results"]
                if row["inside"] is not None and (row["scenario"] == FITTED) is is_fitted
            ]  # fmt: skip
            if cells:
                lines.append(
                    f"Printed cells, {kind}: {sum(cells)} of {len(cells)} within tolerance."
                )
        return "\n".join(lines)


def results(metrics: PvldbMetrics) -> Rows:
    """One row per cell of Tables 3 to 5; the published columns are empty where none is known."""
    rows = []
    for scenario, metric, name in product(metrics.scenarios(), METRICS, FILTERS.values()):
        cell = metrics.cell(scenario, name, metric)
        figure = published().get((scenario, name, metric))
        off = 100 * (cell.mean / figure.mean - 1) if figure else None
        row = {
            "scenario": scenario, "metric": metric, "filter": name,
            "runs": cell.runs, "mean": cell.mean, "sigma": cell.known_sigma,
            "published_mean": figure and figure.mean, "published_sigma": figure and figure.sigma,
            "off_percent": off, "tolerance_percent": figure and TOLERANCE_PERCENT[metric],
            "inside": None if off is None else abs(off) <= TOLERANCE_PERCENT[metric],
        }  # fmt: skip
        rows.append(row)
    return rows


def welch_tests(metrics: PvldbMetrics) -> Rows:
    """Welch's t-test of every pair of filters, of what was measured and of what is printed."""
    rows = []
    for scenario, metric, pair in product(metrics.scenarios(), METRICS, PAIRS):
        own = [metrics.cell(scenario, name, metric) for name in pair]
        figures = [published().get((scenario, name, metric)) for name in pair]
        printed = [Mean(figure.mean, figure.sigma or 0.0, RUNS) for figure in figures if figure]
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


STUDY = Pvldb127Study()
