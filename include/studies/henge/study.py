"""The evaluation of Henge (Kalim et al.), twelve experiments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from include.experiment.spec import RunSpec
from include.studies.base import (
    ClaimCase,
    Rows,
    Study,
    StudyData,
    StudyResults,
    check_claims,
    read_claims,
    runs_of,
)
from include.studies.henge.metrics import HengeMetrics, read_run
from include.studies.henge.predicates import PREDICATES
from include.studies.henge.predicates_loaded import LOADED_PREDICATES

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
    """One row per claim."""
    metrics = HengeMetrics([read_run(measured, run) for run in measured.runs])
    return StudyResults(tables={"claims": claims_of(metrics)})


def claims_of(metrics: HengeMetrics) -> Rows:
    """One row per claim; those whose runs are not there are unknown."""
    predicates = {**PREDICATES, **LOADED_PREDICATES}
    return check_claims(CLAIMS, predicates, lambda _: [ClaimCase((metrics,))])


STUDY = Study(
    name="henge",
    title="Henge: Intent-driven Multi-Tenant Stream Processing",
    experiment="henge",
    runs=runs,
    evaluate=evaluate,
)
