"""Simulator against reality: one run on real containers, and the same run simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.results.tables.staged import Rows, gathered
from include.studies.base import Cell, CellValue, Study, StudyData, runs_of
from include.studies.live.metrics import LiveMetrics, cell_figures, figures_of

EXPERIMENT = "live_and_simulated"
CONTROLLER = "threshold"
SEEDS = range(1, 21)
"""Of the simulations; reality has none."""


def scaled(seed: int | None = None) -> RunSpec:
    """The run of specs/live.yaml under the threshold controller, on real containers."""
    runs = runs_of(EXPERIMENT, ["live"], None if seed is None else [seed])
    return next(run for run in runs if run.controller == CONTROLLER)


class LiveStudy(Study):
    """One row per claim, and every figure side by side."""

    name = "live"
    title = "Simulator against reality"
    experiment = EXPERIMENT

    def runs(self, seeds: Sequence[int] | None = None) -> list[RunSpec]:
        """The run on real containers, then its simulations with some seeds, or with twenty."""
        chosen = list(seeds or SEEDS)
        live = scaled(min(chosen))
        return [live, *(replace(live, testbed="simulated", seed=seed) for seed in chosen)]

    def read(self, measured: StudyData) -> LiveMetrics:
        figures = gathered(
            (run.testbed == "simulated", figures_of(resolve(run), measured.store(run)))
            for run in measured.runs
        )
        return LiveMetrics(live=figures.get(False, ()), simulated=figures.get(True, ()))

    def tables(self, metrics: LiveMetrics) -> Mapping[str, Rows]:
        return {"side_by_side": metrics.rows()}

    def cell_values(self, metrics: LiveMetrics) -> Iterator[CellValue]:
        """The run on real containers and its simulations as two workloads."""
        for kind, own in (("live", metrics.live), ("simulated", metrics.simulated)):
            for run in own:
                for metric, value in cell_figures(run).items():
                    yield kind, CONTROLLER, metric, value

    def cell_of(self, run: RunSpec) -> Cell:
        return "simulated" if run.testbed == "simulated" else "live", run.controller


STUDY = LiveStudy()
