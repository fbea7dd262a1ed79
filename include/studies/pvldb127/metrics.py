"""What the evaluation of PVLDB 12(7) is made of: the figures of its tables, run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from include.experiment.spec import RunSpec
from include.results.reports.statistics import Mean, mean_of
from include.results.tables.staged import gathered
from include.studies.base import StudyData, known
from include.studies.pvldb127.published import (
    EVENTS,
    FILTERS,
    IMAGE_TIME,
    QUERY_TIME,
    SCENARIOS,
    VIOLATIONS,
    VM_TIME,
    Key,
)

READ = ("lease", "scaling_activity", "processing_duration", "queue")
IMAGES, QUERIES = "images", "queries"
IMAGE_LIMIT_MS, QUERY_LIMIT_MS = 5000.0, 1000.0
"""Section 3.2. An image is late from its submission on, a query as it is answered."""


@dataclass(frozen=True)
class PvldbMetrics:
    """Values of runs by scenario, filter and metric; ``curves`` are VMs every half second, a mean.

    ``asked`` are the scenarios that a claim about every scenario is asked of.
    """

    cells: Mapping[Key, Sequence[float]]
    curves: Mapping[tuple[str, str], np.ndarray] = field(default_factory=dict)
    asked: tuple[str, ...] = SCENARIOS

    def cell(self, scenario: str, name: str, metric: str) -> Mean:
        """One cell. Raises NotKnown when it was not measured."""
        return mean_of(known(self.cells, (scenario, name, metric)))

    def curve(self, scenario: str, name: str) -> np.ndarray:
        """VMs every half second. Raises NotKnown when they were not measured."""
        means: np.ndarray = known(self.curves, (scenario, name))
        return means

    def mean(self, scenario: str, name: str, metric: str) -> float:
        """The mean of a cell. Raises NotKnown when it was not measured."""
        return self.cell(scenario, name, metric).mean

    def change_percent(self, scenario: str, metric: str, other: str) -> float:
        """How much more EKF has than another filter, in percent. Raises NotKnown."""
        return 100 * (self.mean(scenario, "EKF", metric) / self.mean(scenario, other, metric) - 1)

    def scenarios(self) -> list[str]:
        """Those that have figures of all three filters."""
        named = dict.fromkeys(key[0] for key in self.cells)
        return [s for s in named if all((s, f, VM_TIME) in self.cells for f in FILTERS.values())]

    def vms(self, scenario: str, name: str, from_s: float, to_s: float) -> float:
        """Mean number of VMs in a span of time. Raises NotKnown when it was not measured."""
        curve = self.curve(scenario, name)
        return float(curve[round(2 * from_s) : round(2 * to_s)].mean())


@dataclass(frozen=True, slots=True)
class PvldbRun:
    """The five figures of one run, and its VMs at every monitoring time."""

    figures: Mapping[str, float]
    vms: np.ndarray


def metrics_of(runs: Sequence[tuple[RunSpec, PvldbRun]]) -> PvldbMetrics:
    """All runs, gathered by scenario and filter."""
    named = [(spec.pattern, FILTERS[spec.controller], run) for spec, run in runs]
    curves = gathered(((pattern, name), run.vms) for pattern, name, run in named)
    values = gathered(
        ((pattern, name, metric), value)
        for pattern, name, run in named
        for metric, value in run.figures.items()
    )
    return PvldbMetrics(values, {key: np.mean(samples, axis=0) for key, samples in curves.items()})


def read_run(measured: StudyData, spec: RunSpec) -> PvldbRun:
    """The figures of a complete run, from its measured rows."""
    tables = {table: measured.columns(spec, table) for table in READ}
    return figures_of(tables, sample_every_items=1)


def figures_of(tables: Mapping[str, Mapping[str, Any]], sample_every_items: int) -> PvldbRun:
    """The figures of measured rows, as columns of arrays.

    A scaling event is one decision that starts or stops instances, however many: what the
    paper says of EKF, which "dictates how many". VM time counts from the order to the end.
    """
    lease, done = tables["lease"], tables["processing_duration"]
    vm_s = float(np.sum(np.asarray(lease["ended_s"]) - np.asarray(lease["ordered_s"])))
    operator = np.asarray(done["operator"]).astype(str)
    images, queries = operator == IMAGES, operator == QUERIES
    late_images = (done["age_ms"][images] > IMAGE_LIMIT_MS).sum()
    late_queries = (done["duration_ms"][queries] > QUERY_LIMIT_MS).sum()
    queue = tables["queue"]
    own = np.asarray(queue["operator"]).astype(str) == IMAGES
    figures = {
        VM_TIME: vm_s / 3600,
        EVENTS: float(scaling_events(tables.get("scaling_activity", {}))),
        IMAGE_TIME: float(done["duration_ms"][images].mean()) / 1000,
        QUERY_TIME: float(done["duration_ms"][queries].mean()) / 1000,
        VIOLATIONS: float(late_images + late_queries) * sample_every_items / 1000,
    }
    return PvldbRun(figures, np.asarray(queue["instances"])[own].astype(float))


def scaling_events(activities: Mapping[str, Any]) -> int:
    """Decisions that started or stopped instances."""
    rows = zip(activities.get("time_s", ()), activities.get("activity", ()), strict=True)
    return len({(float(t), str(a)) for t, a in rows if a in ("upscaling", "downscaling")})
