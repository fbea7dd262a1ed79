"""The preprint of PeerJ CS 141 as a study: every printed figure beside every reading's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.results.tables.staged import Rows, gathered
from include.studies.base import Cell, CellValue, ClaimCase, Study, StudyData
from include.studies.page import StudyResults
from include.studies.preprint.metrics import figures_of_run
from include.studies.preprint.predicates import Means
from include.studies.preprint.published import APPROACHES, printed, printed_of
from include.studies.preprint.readings import (
    NEAR_PERCENT,
    READINGS,
    count_error_percent,
    reading_of,
)

Figures = Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
"""By pattern and name of the reading: the values of every metric, one per run."""


@dataclass(frozen=True)
class PreprintMetrics:
    """What every run counted, and which readings the counts support."""

    figures: Figures

    @cached_property
    def means(self) -> Mapping[tuple[str, str], Mapping[str, float]]:
        """By pattern and reading: means over its runs."""
        return {
            case: {metric: fmean(values) for metric, values in own.items()}
            for case, own in self.figures.items()
        }

    @cached_property
    def errors(self) -> Mapping[str, float]:
        """By reading: how far its counts on stepwise are off, in percent."""
        return {
            one.name: count_error_percent(
                self.means["stepwise", one.name], printed_of("stepwise", one.approach)
            )
            for one in READINGS
            if ("stepwise", one.name) in self.means
        }

    @cached_property
    def best(self) -> Mapping[str, str]:
        """By approach: the measured reading whose counts are off least; they support it."""
        own = (reading for reading in READINGS if reading.name in self.errors)
        measured = gathered((reading.approach, reading.name) for reading in own)
        return {
            approach: min(names, key=self.errors.__getitem__)
            for approach, names in measured.items()
        }

    @cached_property
    def chosen(self) -> Mapping[str, Means]:
        """By pattern: the means of the readings that the counts support."""
        return {
            pattern: {
                (approach, metric): value
                for approach, name in self.best.items()
                for metric, value in self.means.get((pattern, name), {}).items()
            }
            for pattern in dict.fromkeys(pattern for pattern, _ in self.means)
        }


class PreprintStudy(Study):
    """Every reading on the stepwise pattern, and the supported ones on both."""

    name = experiment = "preprint"
    title = "Cost-efficient enactment of stream processing topologies (preprint of PeerJ CS 141)"
    specs = ("preprint", "preprint_readings")
    workload = "pattern"

    def read(self, measured: StudyData) -> PreprintMetrics:
        by_reading: dict[Cell, dict[str, list[float]]] = {}
        for run in measured.runs:
            slo_ms = {op.name: op.slo_ms for op in resolve(run).topology.operators}
            figures = figures_of_run(
                measured.columns(run, "processing_duration", "time_s", "operator", "duration_ms"),
                measured.columns(run, "scaling_activity", "activity"),
                measured.columns(run, "lease", "ordered_s", "ended_s", "paid_until_s", "released"),
                slo_ms,
            )
            values = by_reading.setdefault(self.cell_of(run), {})
            for metric, value in figures.items():
                values.setdefault(metric, []).append(float(value))
        return PreprintMetrics(by_reading)

    def tables(self, metrics: PreprintMetrics) -> Mapping[str, Rows]:
        return {"readings": _readings(metrics), "verdict": verdict(metrics)}

    def cases(self, metrics: PreprintMetrics, claim: Mapping[str, Any]) -> list[ClaimCase]:
        """Every pattern that it is made for, by the readings that the counts support."""
        return [
            ClaimCase((means,), {"pattern": pattern})
            for pattern, means in metrics.chosen.items()
            if pattern in claim.get("patterns", (pattern,))
        ]

    def cell_values(self, metrics: PreprintMetrics) -> Iterator[CellValue]:
        for cell, own in sorted(metrics.figures.items()):
            for metric, values in own.items():
                for value in values:
                    yield *cell, metric, value

    def cell_of(self, run: RunSpec) -> Cell:
        return run.pattern, reading_of(run).name

    def summary(self, results: StudyResults) -> str:
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
        return "\n".join([*lines, super().summary(results)])


def verdict(metrics: PreprintMetrics) -> Rows:
    """A row per printed figure and reading that measured it; figures of both stand once."""
    rows: list[dict[str, Any]] = []
    for (pattern, approach, metric), value in printed().items():
        means: dict[str, Mapping[str, float]]
        if approach == "both":
            means = {"both": compared(metrics.chosen.get(pattern, {}))}
        else:
            names = [one.name for one in READINGS if one.approach == approach]
            means = {name: metrics.means.get((pattern, name), {}) for name in names}
        for name, own in means.items():
            if metric in own:
                is_supported = name in (*metrics.best.values(), "both")
                row = _judged(pattern, approach, name, metric, value, own[metric])
                rows.append(row | {"supported": "yes" if is_supported else "no"})
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


def _readings(metrics: PreprintMetrics) -> Rows:
    return [
        {
            "reading": one.name,
            "approach": one.approach,
            "says": one.says,
            "count_error_percent": metrics.errors[one.name],
            "supported": "yes" if metrics.best[one.approach] == one.name else "no",
        }
        for one in READINGS
        if one.name in metrics.errors
    ]


STUDY = PreprintStudy()
