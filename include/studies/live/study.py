"""Simulator against reality: one run on real containers, and the same run simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

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
from include.studies.live.metrics import Figures, LiveMetrics, cell_figures, figures_of
from include.studies.live.predicates import PREDICATES
from include.studies.results import Rows, StudyResults

EXPERIMENT = "live_and_simulated"
SEEDS = range(1, 21)
"""Of the simulations; reality has none."""
CLAIMS = read_claims(Path(__file__).parent)


def scaled(seed: int | None = None) -> RunSpec:
    """The run of specs/live.yaml under the threshold controller, on real containers."""
    runs = runs_of(EXPERIMENT, ["live"], None if seed is None else [seed])
    return next(run for run in runs if run.controller == "threshold")


def runs(seeds: Sequence[int] | None = None) -> list[RunSpec]:
    """The run on real containers, then its simulations with some seeds, or with twenty."""
    chosen = list(seeds or SEEDS)
    live = scaled(min(chosen))
    return [live, *(replace(live, testbed="simulated", seed=seed) for seed in chosen)]


def evaluate(measured: StudyData) -> StudyResults:
    """One row per claim, and every figure side by side."""
    figures: dict[bool, list[Figures]] = {True: [], False: []}
    for run in measured.runs:
        figures[run.testbed == "simulated"].append(figures_of(resolve(run), measured.store(run)))
    metrics = LiveMetrics(live=figures[False], simulated=figures[True])
    claims = check_claims(CLAIMS, PREDICATES, lambda _: [ClaimCase((metrics,))])
    tables = {"claims": claims, "side_by_side": metrics.rows(), "cells": cells(metrics)}
    return StudyResults(tables=tables)


def cells(metrics: LiveMetrics) -> Rows:
    """The run on real containers and its simulations as two workloads, for ``cells.csv``."""
    (controller,) = {run.controller for run in runs()}
    return cells_of(
        (kind, controller, metric, [one[metric] for one in figures])
        for kind, own in (("live", metrics.live), ("simulated", metrics.simulated))
        for figures in [[cell_figures(run) for run in own]]
        for metric in (figures[0] if figures else ())
    )


def _cell(run: RunSpec) -> Cell:
    return ("simulated" if run.testbed == "simulated" else "live", run.controller)


STUDY = Study(
    name="live",
    title="Simulator against reality",
    experiment=EXPERIMENT,
    runs=runs,
    evaluate=evaluate,
    cell_of=_cell,
)
