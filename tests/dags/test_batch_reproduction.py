"""The nightly reproduction: it measures anew, and hears of every bit that drifted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from include.control.stages import store_of
from include.measurements.store import write_json
from include.reproduction.drift import run_digests, set_baseline
from include.reproduction.matrix import EXPERIMENT, matrix

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("default"),  # Airflow warns about its own dependencies
]

CELL = {"pattern": "stepwise", "controller": "btu", "btu_min": 10.0, "metric": "resource_cost"}


@pytest.fixture
def folder(data_root: Path) -> Path:
    """The folder of a reproduction in which every run is complete."""
    for run in matrix():
        manifest(run.run_id, data_root / EXPERIMENT, sha256="of last night")
    return data_root / EXPERIMENT


def manifest(run: str, folder: Path, sha256: str) -> None:
    parts = [{"path": "part-000.parquet", "sha256": sha256}]
    write_json(folder / "runs" / run / "manifest.json", {"spec_hash": "same", "parts": parts})


def keep(folder: Path, cells: list[Mapping[str, Any]]) -> None:
    digests = run_digests(folder, (run.run_id for run in matrix()))
    set_baseline(folder, [{"sigma": 0.0, "runs": 3, **cell} for cell in cells], digests)


def reasons(folder: Path, cells: list[Mapping[str, Any]]) -> list[str]:
    from include.reproduction.drift import baselines, drift
    from tidebench.reproduction import drifted

    rows = [row for baseline in baselines(folder) for row in drift(baseline, cells)]
    findings: Any = SimpleNamespace(drift=rows)
    return drifted(findings, folder)


def test_everything_is_measured_anew_in_one_cell_per_pattern_and_controller(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidebench.reproduction import ResolveReproduction

    monkeypatch.setenv("TIDEBENCH_DATA_ROOT", str(folder.parent))
    cells = ResolveReproduction(task_id="resolve_matrix").execute({})

    assert [run for cell in cells for run in cell["runs"]] == [run.to_json() for run in matrix()]
    assert len({cell["name"] for cell in cells}) == len(cells) == 16
    assert [run for run in matrix() if store_of(run, folder.parent).manifest.is_file()] == []


def test_the_same_bits_are_no_drift(folder: Path) -> None:
    keep(folder, [CELL | {"mean": 100.0}])
    assert reasons(folder, [CELL | {"mean": 100.0}]) == []


def test_a_cell_that_moved_is_named_with_what_to_do(folder: Path) -> None:
    keep(folder, [CELL | {"mean": 100.0}])
    manifest(matrix()[0].run_id, folder, sha256="of tonight")

    (reason,) = reasons(folder, [CELL | {"mean": 101.0}, CELL | {"btu_min": 30.0, "mean": 7.0}])
    assert "1 runs differ; 2 of 2 cells moved" in reason
    assert "accept_drift" in reason
    assert "stepwise, btu, BTU 10, resource_cost: 100.0000, now 101.0000" in reason
    assert "stepwise, btu, BTU 30, resource_cost: absent, now 7.0000" in reason


def test_bits_that_move_no_cell_are_drift_too(folder: Path) -> None:
    keep(folder, [CELL | {"mean": 100.0}])
    manifest(matrix()[0].run_id, folder, sha256="of tonight")
    (reason,) = reasons(folder, [CELL | {"mean": 100.0}])
    assert "1 runs differ; no cell moved" in reason


def test_many_cells_that_moved_are_counted(folder: Path) -> None:
    cells = [CELL | {"btu_min": float(btu_min), "mean": 1.0} for btu_min in range(30)]
    keep(folder, cells)
    manifest(matrix()[0].run_id, folder, sha256="of tonight")
    (reason,) = reasons(folder, [cell | {"mean": 2.0} for cell in cells])
    assert reason.count("BTU ") == 20
    assert reason.endswith("and 10 more, see drift.csv")
