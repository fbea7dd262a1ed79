"""The runs of the reproduction, measured by the code that is here now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from include.control.batch import RunResult, require_complete, run_batch
from include.experiment.spec import RunSpec
from include.reproduction.matrix import EXPERIMENT


def measure_matrix(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    processes: int | None = None,
    report: Callable[[RunResult], None] = lambda _: None,
) -> Path:
    """Measure every run that this code has not measured yet; returns the experiment's folder.

    Raises TestbedError with every failed run and why; the others are kept.
    """
    folder = root / EXPERIMENT
    require_complete(run_batch(specs, root, processes=processes, report=report))
    return folder
