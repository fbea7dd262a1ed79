"""The evaluation of Heinze et al. ("Auto-scaling Techniques for Elastic Data Stream Processing").

Three experiments, one spec each; what they share is measured once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from include.experiment.spec import RunSpec
from include.results.tables.staged import Rows
from include.studies.base import (
    Cell,
    CellValue,
    ClaimCase,
    ClaimOutcome,
    Predicate,
    Study,
    StudyData,
    ask,
)
from include.studies.fugu.metrics import METRICS, Case, FuguMetrics, case_of, metrics_of, read_run


class FuguStudy(Study):
    """One row per case (means over seeds), one row per claim, and one per cell."""

    name = experiment = "fugu"
    title = "Auto-scaling Techniques for Elastic Data Stream Processing (FUGU)"
    specs = ("fugu_configurability", "fugu_workloads", "fugu_adaptivity")
    workload = "pattern"

    def read(self, measured: StudyData) -> FuguMetrics:
        return metrics_of((run, read_run(measured, run)) for run in measured.runs)

    def tables(self, metrics: FuguMetrics) -> Mapping[str, Rows]:
        return {"results": metrics.rows()}

    def beside(self, predicate: Predicate, case: ClaimCase) -> Mapping[str, Any]:
        """In how many seeds a claim holds, beside whether it does for the means over them."""
        (metrics,) = case.of
        outcomes = [ask(predicate, metrics.of_seed(seed))[0] for seed in metrics.seeds()]
        return {"seeds": f"{outcomes.count(ClaimOutcome.HOLDS)} of {len(outcomes)}"}

    def cell_values(self, metrics: FuguMetrics) -> Iterator[CellValue]:
        for case, runs in metrics.runs.items():
            for name, with_unit in METRICS.items():
                for run in runs.values():
                    yield *_cell(case), with_unit, run[name]

    def cell_of(self, run: RunSpec) -> Cell:
        return _cell(case_of(run))


def _cell(case: Case) -> Cell:
    """A configuration stands with its controller."""
    controller, configuration, pattern = case
    return pattern, f"{controller} ({configuration})"


STUDY = FuguStudy()
