"""The evaluation of Henge (Kalim et al.), twelve experiments."""

from __future__ import annotations

from collections.abc import Iterator

from include.experiment.spec import RunSpec
from include.studies.base import Cell, CellValue, Study, StudyData
from include.studies.henge.metrics import HengeMetrics, figures_of, read_run


class HengeStudy(Study):
    """One row per claim and one per cell."""

    name = experiment = "henge"
    title = "Henge: Intent-driven Multi-Tenant Stream Processing"
    specs = tuple(
        f"henge_{name}"
        for name in (
            "cpu_spike", "diurnal", "growing", "hybrid", "initial", "nodes", "outage", "priorities",
            "production", "spikes", "stateful", "triple",
        )
    )  # fmt: skip

    def read(self, measured: StudyData) -> HengeMetrics:
        return HengeMetrics([read_run(measured, run) for run in measured.runs])

    def cell_values(self, metrics: HengeMetrics) -> Iterator[CellValue]:
        """Runs that differ in level, seed or instances at the start are the runs of a cell."""
        for run in metrics.runs:
            for name, value in figures_of(run).items():
                yield *self.cell_of(run.spec), name, value

    def cell_of(self, run: RunSpec) -> Cell:
        return run.topology, run.controller


STUDY = HengeStudy()
