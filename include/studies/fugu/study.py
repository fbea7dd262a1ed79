"""The evaluation of Heinze et al. ("Auto-scaling Techniques for Elastic Data Stream Processing").

Three experiments, one spec each; what they share is measured once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from include.experiment.spec import RunSpec
from include.studies.base import (
    Cell,
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
from include.studies.fugu.metrics import METRICS, Case, FuguMetrics, case_of, metrics_of, read_run
from include.studies.fugu.predicates import PREDICATES
from include.studies.results import Rows, StudyResults

SPECS = ("fugu_configurability", "fugu_workloads", "fugu_adaptivity")
CLAIMS = read_claims(Path(__file__).parent)


def runs(seeds: Sequence[int] | None = None) -> list[RunSpec]:
    """Every run of the three experiments."""
    return runs_of("fugu", SPECS, seeds)


def evaluate(measured: StudyData) -> StudyResults:
    """One row per case (means over seeds), one row per claim, and one per cell."""
    metrics = metrics_of((run, read_run(measured, run)) for run in measured.runs)
    tables = {"claims": claims_of(metrics), "results": metrics.rows(), "cells": cells(metrics)}
    return StudyResults(tables=tables)


def cells(metrics: FuguMetrics) -> Rows:
    """Every figure of every case, for ``cells.csv``; a configuration stands with its controller."""
    return cells_of(
        (
            (*_cell(case), with_unit, [run[name] for run in runs.values()])
            for case, runs in metrics.runs.items()
            for name, with_unit in METRICS.items()
        ),
        workload="pattern",
    )  # fmt: skip


def _cell(case: Case) -> Cell:
    controller, configuration, pattern = case
    return pattern, f"{controller} ({configuration})"


def claims_of(metrics: FuguMetrics) -> Rows:
    """One row per claim: whether it holds for the means over seeds, in how many, and numbers."""
    seeds = metrics.seeds()

    def in_seeds(predicate: Predicate, _: ClaimCase) -> Mapping[str, Any]:
        holding = sum(ask(predicate, metrics.of_seed(seed))[0] == "yes" for seed in seeds)
        return {"seeds": f"{holding} of {len(seeds)}"}

    return check_claims(CLAIMS, PREDICATES, lambda _: [ClaimCase((metrics,))], beside=in_seeds)


STUDY = Study(
    name="fugu",
    title="Auto-scaling Techniques for Elastic Data Stream Processing (FUGU)",
    experiment="fugu",
    runs=runs,
    evaluate=evaluate,
    cell_of=lambda run: _cell(case_of(run)),
)
