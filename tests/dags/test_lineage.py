"""What tasks say of what they read and wrote, beyond what tests/e2e/test_experiment_dag.py sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from include.experiment.params import run_from_params
from include.runs.measurements.rows import TABLES
from tests.dags.ends import execute, fails_for_good


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transport, so that somebody collects lineage."""
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", '{"type": "console"}')


@pytest.mark.usefixtures("configured")
def test_a_results_database_is_named_without_who_logs_in() -> None:
    from tidebench.lineage import results

    tables = results("postgresql+psycopg://me:not-for-anybody@db.example:5433/results?sslmode=on")
    assert {table.namespace for table in tables} == {"postgres://db.example:5433"}
    assert "results.public.cost" in {table.name for table in tables}
    assert "not-for-anybody" not in str(tables)


@pytest.fixture
def cell(data_root: Path) -> dict[str, object]:
    """Of one short run."""
    run = run_from_params({"experiment": "seen", "duration_min": 10, "btu_min": 10, "seed": 3})
    return {"name": run.run_id, "runs": [run.to_json()]}


@pytest.mark.usefixtures("configured")
def test_a_cell_writes_the_measured_tables(cell: dict[str, object], data_root: Path) -> None:
    from tidebench.batch import MeasureCell

    task = MeasureCell(task_id="measure_cell", cell=cell)
    execute(task)
    tables = {Path(dataset.name).name for dataset in task.outlets}
    assert {"queue", "decision", "run", "lease"} <= tables <= set(TABLES)
    assert all(Path(dataset.name).is_dir() for dataset in task.outlets)
    assert all(Path(dataset.name).is_relative_to(data_root) for dataset in task.outlets)


def test_nothing_is_looked_for_where_nobody_collects_it(cell: dict[str, object]) -> None:
    from tidebench.batch import MeasureCell

    task = MeasureCell(task_id="measure_cell", cell=cell)
    execute(task)
    assert task.outlets == []


@pytest.mark.usefixtures("configured")
def test_what_failed_has_read_and_written_nothing_more(
    cell: dict[str, Any], data_root: Path
) -> None:
    from tidebench.tasks import CheckTables

    staged = data_root / "seen" / "staged" / "cost.parquet"
    staged.parent.mkdir(parents=True)
    staged.write_bytes(b"no Parquet file")
    task = CheckTables(task_id="check_tables", experiment="seen")
    with fails_for_good():
        execute(task)
    assert task.outlets == []


@pytest.mark.usefixtures("configured")
def test_what_is_read_is_named_as_it_is(tmp_path: Path) -> None:
    from tidebench.lineage import file, files

    recording = tmp_path / "load [1] *.csv"
    recording.touch()
    assert [dataset.name for dataset in file(recording)] == [str(recording)]
    assert file(tmp_path / "not there.csv") == []
    assert [dataset.name for dataset in files(tmp_path, "*.csv")] == [str(recording)]
    assert files(tmp_path) == []
