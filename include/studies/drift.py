"""Whether the science moved: these results of a study against stored ones.

A baseline holds, per run, its spec hash and one SHA-256 over its measured files, and every cell.
Equal digests mean bit-identical measurements; otherwise the cells say what moved, and how far.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from include.files.whole import csv_rows, read_json, write_json

DIGITS = 4
"""Decimals of cells.csv: cells that agree in them have not moved."""

CELL_COLUMNS = ("pattern", "controller", "btu_min", "metric", "mean", "sigma", "runs")
DRIFT_COLUMNS = (
    "against", "pattern", "controller", "btu_min", "metric",
    "baseline_mean", "mean", "moved", "moved_percent", "state",
)  # fmt: skip

Key = tuple[str, str, float, str]


@dataclass(frozen=True, slots=True)
class Baseline:
    """Cells by pattern, controller, BTU and metric; runs are spec hash and digest by run id."""

    name: str
    cells: Mapping[Key, float]
    runs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def baseline_path(folder: Path) -> Path:
    """Where the stored baseline of an experiment folder lies."""
    return folder / "baseline.json"


def run_digests(folder: Path, runs: Iterable[str]) -> dict[str, dict[str, str]]:
    """Spec hash and SHA-256 over path and content of every measured file, per run id."""
    digests = {}
    for run in sorted(runs):
        manifest = read_json(folder / "runs" / run / "manifest.json")
        listed = "".join(f"{part['path']} {part['sha256']}\n" for part in manifest["parts"])
        digest = hashlib.sha256(listed.encode()).hexdigest()
        digests[run] = {"spec_hash": manifest["spec_hash"], "measurements_sha256": digest}
    return digests


def set_baseline(
    folder: Path, cells: Sequence[Mapping[str, Any]], runs: Mapping[str, Mapping[str, str]]
) -> Path:
    """Store these results as what the next ones are held against."""
    plain = [{name: _cell(row)[name] for name in CELL_COLUMNS} for row in cells]
    write_json(baseline_path(folder), {"cells": plain, "runs": runs})
    return baseline_path(folder)


def baselines(folder: Path, committed: Path | None = None) -> list[Baseline]:
    """The stored baseline, if one was set, and the committed one, if a study has one."""
    available = []
    if baseline_path(folder).is_file():
        stored = read_json(baseline_path(folder))
        available.append(Baseline("stored", _by_key(stored["cells"]), stored["runs"]))
    if committed is not None and committed.is_file():
        available.append(Baseline("committed", _by_key(csv_rows(committed))))
    return available


def moved_runs(baseline: Baseline, runs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Runs that are not bit-identical to the baseline, or are in one of the two only."""
    return sorted(run for run in {*baseline.runs, *runs} if baseline.runs.get(run) != runs.get(run))


def drift(baseline: Baseline, cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per cell of either side; ``state`` is same, moved, new or gone.

    ``moved`` is this mean minus that of the baseline, in the unit of the metric. A metric that an
    earlier version did not have is in no cell of its baseline, and cannot have moved.
    """
    metrics = {metric for _, _, _, metric in baseline.cells}
    now = {key: mean for key, mean in _by_key(cells).items() if key[-1] in metrics}
    rows = []
    for key in sorted({*baseline.cells, *now}):
        before, after = baseline.cells.get(key), now.get(key)
        moved = None if before is None or after is None else after - before
        percent = 100 * moved / before if moved is not None and before else None
        if moved is None:
            state = "new" if before is None else "gone"
        else:
            state = "same" if abs(moved) <= 0.5 * 10**-DIGITS * 1.001 else "moved"
        values = (baseline.name, *key, before, after, moved, percent, state)
        rows.append(dict(zip(DRIFT_COLUMNS, values, strict=True)))
    return rows


def _by_key(cells: Sequence[Mapping[str, Any]]) -> dict[Key, float]:
    return {
        (str(row["pattern"]), str(row["controller"]), float(row["btu_min"]), str(row["metric"])):
        float(row["mean"])
        for row in map(_cell, cells)
    }  # fmt: skip


def _cell(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A cell of a study that names its workloads scenarios, or has no BTUs, like the others."""
    return {"pattern": row.get("scenario"), "btu_min": 0.0, **row}


def verdict_of(baseline: Baseline, rows: Sequence[Mapping[str, Any]], moved: Sequence[str]) -> str:
    """One sentence: what became of the baseline."""
    cells = [row for row in rows if row["state"] != "same"]
    if baseline.runs and not moved:
        return f"Bit-identical to the {baseline.name} baseline: all {len(baseline.runs)} runs."
    runs = f"{len(moved)} runs differ; " if baseline.runs else ""
    if not cells:
        return f"Against the {baseline.name} baseline: {runs}no cell moved."
    shifts = [abs(row["moved_percent"]) for row in cells if row["moved_percent"] is not None]
    most = f", at most by {max(shifts):.2f} %" if shifts else ""
    count = f"{len(cells)} of {len(rows)} cells moved"
    return f"Against the {baseline.name} baseline: {runs}{count}{most}."
