"""The DAG `experiment_batch` for real: cells measured, reused and broken, one report over all.

Half of the cells have a controller of somebody's own, which the DAG knows by its path alone.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from include.experiment.params import matrix_from_params
from include.experiment.spec import RunSpec
from include.results.tables.staged import read_table
from include.runs.stages import run_all, store_of
from include.runs.stored import mark_code
from tests.e2e.dag_process import measured, started
from tests.e2e.own_controller import OWN, write_own

pytestmark = pytest.mark.airflow


def damage(cell: RunSpec, root: Path) -> None:
    """Leave a run of the same spec with other inputs, which no retry puts right."""
    mark_code(store_of(cell, root), cell)
    store_of(cell, root).run_json.write_text("{}")


def test_cells_are_measured_alone_and_reported_together(
    airflow_environment: dict[str, str],
    data_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "home"
    params = {"spec": str(write_own(home, name="small", seeds=[1, 2]))}
    monkeypatch.syspath_prepend(str(home))
    cells = matrix_from_params(params, most_cells=4)
    assert {cell.controller for cell in cells[:-1]} == {OWN, "btu"}
    complete, broken = cells[0], cells[-1]
    for cell in cells[:-1]:
        run_all(cell, tmp_path / "alone")
    alone = measured(tmp_path / "alone" / "small")
    run_all(complete, data_root)
    damage(broken, data_root)
    written = store_of(complete, data_root).manifest.stat().st_mtime_ns

    path = os.pathsep.join([str(home), airflow_environment["PYTHONPATH"]])
    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(data_root), "PYTHONPATH": path}
    with started(environment, params, tmp_path / "log", "experiment_batch") as dag:
        assert dag.finish() != 0, dag.tail()

    folder = data_root / "small"
    assert sorted(dag.done("measure_cell")) == [0, 1, 2, 3], dag.tail()
    assert measured(folder) == alone
    assert store_of(complete, data_root).manifest.stat().st_mtime_ns == written
    assert f"{complete.run_id} is reused" in dag.output
    assert "1 of 4 cells are not measured; the log of each says why. Clear" in dag.output
    assert f"\n  - {broken.run_id}\n" in dag.output

    reported = {row["run"] for row in read_table(folder / "published" / "runs.parquet")}
    assert reported == {cell.run_id for cell in cells[:-1]}
    with closing(sqlite3.connect(data_root / "results.db")) as results:
        stored = {run for (run,) in results.execute("SELECT DISTINCT run FROM cost")}
    assert stored == reported
