"""The runs of the reproduction, measured by the code that is here now."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from include.control.batch import RunResult, require_complete, run_batch
from include.experiment.spec import RunSpec
from include.measurements.store import read_json, write_json
from include.model.errors import StoreError
from include.reproduction.matrix import EXPERIMENT, code_digest


def measure_matrix(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    processes: int | None = None,
    report: Callable[[RunResult], None] = lambda _: None,
) -> Path:
    """Measure every run that this code has not measured yet; returns the experiment's folder.

    Runs of other code are removed first: equal spec hashes would hide that they differ.
    Raises TestbedError with every failed run and why; the others are kept.
    """
    folder = root / EXPERIMENT
    _forget_other_code(folder)
    require_complete(run_batch(specs, root, processes=processes, report=report))
    return folder


def _forget_other_code(folder: Path) -> None:
    mark, digest = folder / "code.json", code_digest()
    try:
        known = read_json(mark)["sha256"] == digest
    except (StoreError, KeyError, TypeError):
        known = False
    if not known:
        for name in ("measurements", "runs"):
            shutil.rmtree(folder / name, ignore_errors=True)
        write_json(mark, {"sha256": digest})
