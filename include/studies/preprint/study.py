"""The preprint of PeerJ CS 141 as a study: every printed figure beside every reading's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.studies.base import (
    Cell,
    ClaimCase,
    Study,
    StudyData,
    cells_of,
    check_claims,
    read_claims,
    runs_of,
)
from include.studies.page import summary as claims_summary
from include.studies.preprint.metrics import figures_of_run
from include.studies.preprint.predicates import PREDICATES, Means
from include.studies.preprint.published import APPROACHES, Key, printed
from include.studies.preprint.readings import (
    NEAR_PERCENT,
    READINGS,
    count_error_percent,
    reading_of,
    supported,
)
from include.studies.results import Rows, StudyResults

SPECS = ("preprint", "preprint_readings")
CLAIMS = read_claims(Path(__file__).parent)
Figures = Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
"""By pattern and name of the reading: the values of every metric, one per run."""


def runs(seeds: Sequence[int] | None = None) -> list[RunSpec]:
    """Every reading on the stepwise pattern, and the supported ones on both."""
    return runs_of("preprint", SPECS, seeds)


def evaluate(measured: StudyData) -> StudyResults:
    """Claims, readings, every printed figure beside them, and the cells of all."""
    return results_of(figures_of(measured))


def figures_of(measured: StudyData) -> Figures:
    """What every run counted."""
    by_reading: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run in measured.runs:
        reading = reading_of(run)
        if reading is None:
            continue
        slo_ms = {op.name: op.slo_ms for op in resolve(run).topology.operators}
        figures = figures_of_run(
            measured.columns(run, "processing_duration", "time_s", "operator", "duration_ms"),
            measured.columns(run, "scaling_activity", "activity"),
            measured.columns(run, "lease", "ordered_s", "ended_s", "paid_until_s", "released"),
            slo_ms,
        )
        values = by_reading.setdefault((run.pattern, reading.name), {})
        for metric, value in figures.items():
            values.setdefault(metric, []).append(float(value))
    return by_reading


def results_of(figures: Figures) -> StudyResults:
    """The tables of the study, of the figures of its runs."""
    means = {
        case: {metric: fmean(values) for metric, values in own.items()}
        for case, own in figures.items()
    }
    printed_figures = printed()
    errors = {
        one.name: count_error_percent(
            means["stepwise", one.name],
            _of_approach(printed_figures, "stepwise", one.approach),
        )
        for one in READINGS
        if ("stepwise", one.name) in means
    }
    best = supported(errors)
    chosen = {
        pattern: {
            (approach, metric): value
            for approach, name in best.items()
            for metric, value in means.get((pattern, name), {}).items()
        }
        for pattern in dict.fromkeys(pattern for pattern, _ in means)
    }
    return StudyResults(
        tables={
            "claims": claims_of(chosen),
            "readings": _readings(errors, best),
            "verdict": verdict(means, chosen, best, printed_figures),
            "cells": _cells(figures),
        }
    )


def verdict(
    means: Mapping[tuple[str, str], Mapping[str, float]],
    chosen: Mapping[str, Means],
    best: Mapping[str, str],
    printed_figures: Mapping[Key, float],
) -> Rows:
    """A row per printed figure and reading that measured it; figures of both stand once."""
    rows: list[dict[str, Any]] = []
    for (pattern, approach, metric), value in printed_figures.items():
        compared_means: dict[str, float | None]
        if approach == "both":
            compared_means = {"both": compared(chosen.get(pattern, {})).get(metric)}
        else:
            names = [one.name for one in READINGS if one.approach == approach]
            compared_means = {name: means.get((pattern, name), {}).get(metric) for name in names}
        for name, mean in compared_means.items():
            if mean is not None:
                rows.append(_judged(pattern, approach, name, metric, value, mean))
                rows[-1]["supported"] = "yes" if name in (*best.values(), "both") else "no"
    return rows


def compared(means: Means) -> dict[str, float]:
    """What the text says of both approaches together; {} unless both were measured."""
    if {approach for approach, _ in means} != set(APPROACHES):
        return {}
    own, other = (means[approach, "paid_btus_count"] for approach in APPROACHES)
    constant = max(means[approach, "fixed_paid_btus_count"] for approach in APPROACHES)
    return {
        "most_vms_count": max(means[approach, "most_vms_count"] for approach in APPROACHES),
        "fixed_paid_btus_count": constant,
        "paid_btus_saving_percent": 100 * (1 - own / other),
        "fixed_saving_percent": 100 * (1 - own / constant),
    }


def claims_of(chosen: Mapping[str, Means]) -> Rows:
    """One row per claim and pattern, of the readings that the counts support."""

    def cases(_: Mapping[str, Any]) -> list[ClaimCase]:
        return [ClaimCase((means,), {"pattern": pattern}) for pattern, means in chosen.items()]

    return check_claims(CLAIMS, PREDICATES, cases)


def _of_approach(figures: Mapping[Key, float], pattern: str, approach: str) -> dict[str, float]:
    return {
        metric: value for (p, a, metric), value in figures.items() if (p, a) == (pattern, approach)
    }


def _judged(
    pattern: str, approach: str, reading: str, metric: str, value: float, mean: float
) -> dict[str, Any]:
    in_points = metric.endswith(("_percent", "_points"))
    error = mean - value if in_points else 100 * (mean - value) / max(1.0, value)
    near = abs(error) <= NEAR_PERCENT if metric.endswith("_count") else None
    return {
        "pattern": pattern,
        "approach": approach,
        "reading": reading,
        "metric": metric,
        "printed": value,
        "mean": mean,
        "error": error,
        "error_unit": "points" if in_points else "percent",
        "within_25_percent": "" if near is None else "yes" if near else "no",
    }


def _readings(errors: Mapping[str, float], best: Mapping[str, str]) -> Rows:
    return [
        {
            "reading": one.name,
            "approach": one.approach,
            "says": one.says,
            "count_error_percent": errors[one.name],
            "supported": "yes" if best[one.approach] == one.name else "no",
        }
        for one in READINGS
        if one.name in errors
    ]


def cell_of(run: RunSpec) -> Cell | None:
    """Pattern and reading of a run."""
    reading = reading_of(run)
    return (run.pattern, reading.name) if reading else None


def _cells(figures: Figures) -> Rows:
    return cells_of(
        (
            (*cell, metric, values)
            for cell, own in sorted(figures.items())
            for metric, values in own.items()
        ),
        workload="pattern",
    )


def summary(results: StudyResults) -> str:
    """What a terminal shows: which reading the counts support, and its counts."""
    rows = results.tables["verdict"]
    counts = [row for row in rows if row["supported"] == "yes" and row["within_25_percent"]]
    near = sum(row["within_25_percent"] == "yes" for row in counts)
    lines = [
        f"{row['reading']}: counts off by {row['count_error_percent']:.0f} %"
        + (" (supported)" if row["supported"] == "yes" else "")
        for row in results.tables["readings"]
    ]
    lines.append(f"{near} of {len(counts)} printed counts are within {NEAR_PERCENT:g} %.")
    return "\n".join([*lines, claims_summary(results)])


STUDY = Study(
    name="preprint",
    title="Cost-efficient enactment of stream processing topologies (preprint of PeerJ CS 141)",
    experiment="preprint",
    runs=runs,
    evaluate=evaluate,
    cell_of=cell_of,
    summary=summary,
)
