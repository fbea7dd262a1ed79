"""The nightly reproduction: it measures anew, and hears of every bit that drifted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from include.control.stages import store_of
from include.measurements.store import write_json
from include.model.errors import GateFailed
from include.studies.peerj141 import drift as drift_module
from include.studies.peerj141.drift import CELL_COLUMNS, baselines, drift
from include.studies.peerj141.nights import (
    begin_night,
    keep_night,
    matrix_of,
    require_no_drift,
)

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("default"),  # Airflow warns about its own dependencies
]

CELL = {
    "pattern": "stepwise", "controller": "btu", "btu_min": 10.0, "metric": "resource_cost",
    "mean": 100.0, "sigma": 0.0, "runs": 3,
}  # fmt: skip
Cells = list[Mapping[str, Any]]


@pytest.fixture
def folder(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a nightly reproduction; no cells are committed."""
    monkeypatch.setattr(drift_module, "COMMITTED", data_root / "committed.csv")
    return data_root / "nightly"


def measure(folder: Path, bits: str) -> None:
    """Every run of the night, complete; the first one with these bits."""
    for index, run in enumerate(matrix_of(folder)):
        parts = [{"path": "part-000.parquet", "sha256": "same" if index else bits}]
        manifest = {"spec_hash": "same", "parts": parts}
        write_json(folder / "runs" / run.run_id / "manifest.json", manifest)


def judge(folder: Path, cells: Cells, night: str) -> str:
    """What a night that measured these cells fails for, after keeping it; empty when nothing."""
    rows = [row for baseline in baselines(folder) for row in drift(baseline, cells)]
    findings: Any = SimpleNamespace(cells=cells, drift=rows)
    keep_night(findings, folder, night)
    try:
        require_no_drift(findings, folder)
    except GateFailed as error:
        return str(error)
    return ""


def spend(folder: Path, night: str, *, bits: str = "same", cells: Cells | None = None) -> str:
    begin_night(folder, night)
    measure(folder, bits)
    return judge(folder, cells or [CELL], night)


def test_everything_is_measured_anew_in_one_cell_per_pattern_and_controller(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidebench.reproduction import ResolveReproduction

    monkeypatch.setenv("TIDEBENCH_DATA_ROOT", str(folder.parent))
    measure(folder, "same")
    context: Any = {"run_id": "tonight"}
    cells = ResolveReproduction(task_id="resolve_matrix").execute(context)

    runs = matrix_of(folder)
    assert [text for cell in cells for text in cell["runs"]] == [run.to_json() for run in runs]
    assert len({cell["name"] for cell in cells}) == len(cells) == 16
    assert {run.experiment for run in runs} == {"nightly"}
    assert [run for run in runs if store_of(run, folder.parent).manifest.is_file()] == []


def test_the_first_night_has_nothing_to_drift_from(folder: Path) -> None:
    assert spend(folder, "first") == ""


def test_the_same_bits_are_no_drift(folder: Path) -> None:
    spend(folder, "first")
    assert spend(folder, "second") == ""


def test_a_cell_that_moved_is_named_with_what_to_do(folder: Path) -> None:
    spend(folder, "first")
    cells = [CELL | {"mean": 101.0}, CELL | {"btu_min": 30.0, "mean": 7.0}]
    reason = spend(folder, "second", bits="other", cells=cells)
    assert "1 runs differ; 2 of 2 cells moved" in reason
    assert "accept_drift" in reason
    assert "stepwise, btu, BTU 10, resource_cost: 100.0000, now 101.0000" in reason
    assert "stepwise, btu, BTU 30, resource_cost: absent, now 7.0000" in reason


def test_bits_that_move_no_cell_are_drift_too(folder: Path) -> None:
    spend(folder, "first")
    assert "1 runs differ; no cell moved" in spend(folder, "second", bits="other")


def test_a_night_is_held_against_the_one_before_it_however_often_it_is_judged(
    folder: Path,
) -> None:
    spend(folder, "first")
    drifted = spend(folder, "second", bits="other")
    assert judge(folder, [CELL], "second") == drifted
    assert spend(folder, "second", bits="other") == drifted, "begun again"
    assert spend(folder, "third", bits="other") == ""


def test_a_night_that_came_to_no_verdict_is_not_last_night(folder: Path) -> None:
    spend(folder, "first")
    begin_night(folder, "broken")
    measure(folder, "other")
    assert spend(folder, "third") == ""
    assert "1 runs differ" in spend(folder, "fourth", bits="other")


def test_a_cell_that_is_not_the_committed_one_fails_every_night(folder: Path) -> None:
    committed = ",".join(str(CELL[name]) for name in CELL_COLUMNS)
    drift_module.COMMITTED.write_text(f"{','.join(CELL_COLUMNS)}\n{committed}\n")
    assert spend(folder, "first") == ""
    moved = [CELL | {"mean": 100.1}]
    for night in ("second", "third"):
        reason = spend(folder, night, cells=moved)
        assert "Against the committed baseline: 1 of 1 cells moved, at most by 0.10 %." in reason
    assert "stored" not in reason


def test_many_cells_that_moved_are_counted(folder: Path) -> None:
    cells = [CELL | {"btu_min": float(btu_min)} for btu_min in range(30)]
    spend(folder, "first", cells=cells)
    moved = [cell | {"mean": 2.0} for cell in cells]
    reason = spend(folder, "second", bits="other", cells=moved)
    assert reason.count("BTU ") == 20
    assert "and 10 more, see drift.csv" in reason
