"""Simulator against reality: one run on real containers, and the same run simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.studies.base import ClaimCase, Study, StudyData, check_claims, read_claims, runs_of
from include.studies.live.metrics import LiveMetrics, RunFigures, figures_of
from include.studies.live.predicates import PREDICATES
from include.studies.results import StudyResults

EXPERIMENT = "live_and_simulated"
SEEDS = range(1, 21)
"""Of the simulations; reality has none."""
CLAIMS = read_claims(Path(__file__).parent)


def runs(seeds: Sequence[int] | None = None) -> list[RunSpec]:
    """The run on real containers, then its simulations with some seeds, or with twenty."""
    chosen = list(seeds or SEEDS)
    (live,) = runs_of(EXPERIMENT, ["live"], [min(chosen)])
    return [live, *(replace(live, testbed="simulated", seed=seed) for seed in chosen)]


def evaluate(measured: StudyData) -> StudyResults:
    """One row per claim, and every figure side by side."""
    figures: dict[bool, list[RunFigures]] = {True: [], False: []}
    for run in measured.runs:
        figures[run.testbed == "simulated"].append(figures_of(resolve(run), measured.store(run)))
    metrics = LiveMetrics(live=figures[False], simulated=figures[True])
    claims = check_claims(CLAIMS, PREDICATES, lambda _: [ClaimCase((metrics,))])
    return StudyResults(tables={"claims": claims, "side_by_side": metrics.rows()})


STUDY = Study(
    name="live",
    title="Simulator against reality",
    experiment=EXPERIMENT,
    runs=runs,
    evaluate=evaluate,
)
