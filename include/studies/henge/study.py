"""The evaluation of Henge (Kalim et al.), twelve experiments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from include.experiment.spec import RunSpec
from include.studies.base import (
    ClaimCase,
    Study,
    StudyData,
    cells_of,
    check_claims,
    read_claims,
    runs_of,
)
from include.studies.henge.metrics import HengeMetrics, figures_of, read_run
from include.studies.henge.predicates import PREDICATES
from include.studies.results import Rows, StudyResults

SPECS = tuple(
    f"henge_{name}"
    for name in (
        "cpu_spike", "diurnal", "growing", "hybrid", "initial", "nodes", "outage", "priorities",
        "production", "spikes", "stateful", "triple",
    )
)  # fmt: skip
CLAIMS = read_claims(Path(__file__).parent)


def runs(seeds: Sequence[int] | None = None) -> list[RunSpec]:
    """Every run of the experiments."""
    return runs_of("henge", SPECS, seeds)


def evaluate(measured: StudyData) -> StudyResults:
    """One row per claim and one per cell."""
    metrics = HengeMetrics([read_run(measured, run) for run in measured.runs])
    return StudyResults(tables={"claims": claims_of(metrics), "cells": cells(metrics)})


def cells(metrics: HengeMetrics) -> Rows:
    """Figures of every topology and controller, for ``cells.csv``.

    Runs that differ in level, seed or instances at the start are the runs of a cell.
    """
    by_cell: dict[tuple[str, str, str], list[float]] = {}
    for run in metrics.runs:
        for name, value in figures_of(run).items():
            by_cell.setdefault((run.spec.topology, run.spec.controller, name), []).append(value)
    return cells_of((*key, values) for key, values in by_cell.items())


def claims_of(metrics: HengeMetrics) -> Rows:
    """One row per claim; those whose runs are not there are unknown."""
    return check_claims(CLAIMS, PREDICATES, lambda _: [ClaimCase((metrics,))])


STUDY = Study(
    name="henge",
    title="Henge: Intent-driven Multi-Tenant Stream Processing",
    experiment="henge",
    runs=runs,
    evaluate=evaluate,
    cell_of=lambda run: (run.topology, run.controller),
)
