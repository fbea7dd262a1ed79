"""What tasks say of what they read and wrote, beyond what tests/e2e/test_lineage.py sees."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from include.experiment.params import run_from_params
from include.runs.measurements.rows import TABLES
from include.runs.stages import run_all

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("default"),  # Airflow warns about its own dependencies
]


def test_a_results_database_is_named_without_who_logs_in() -> None:
    from tidebench.lineage import results

    datasets = results("postgresql+psycopg://me:not-for-anybody@db.example:5433/results?sslmode=on")
    assert {dataset.namespace for dataset in datasets} == {"postgres://db.example:5433"}
    assert "results.public.cost" in {dataset.name for dataset in datasets}
    assert "not-for-anybody" not in str(datasets)
    assert "me" not in {
        part for dataset in datasets for part in (dataset.namespace + dataset.name).split("/")
    }


@pytest.fixture
def cell(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Of a run that is measured."""
    monkeypatch.setenv("TIDEBENCH_DATA_ROOT", str(data_root))
    run = run_from_params({"experiment": "seen", "duration_min": 10, "btu_min": 10, "seed": 3})
    run_all(run, data_root)
    return {"name": run.run_id, "runs": [run.to_json()]}


def test_a_cell_writes_the_measured_tables_of_its_runs(
    cell: dict[str, object], data_root: Path
) -> None:
    from tidebench.batch import MeasureCell

    task = MeasureCell(task_id="measure_cell", cell=cell)
    done = task.get_openlineage_facets_on_complete(SimpleNamespace(state="success"))
    tables = {Path(dataset.name).name for dataset in done.outputs}
    assert {"queue", "decision", "run", "lease"} <= tables <= set(TABLES)
    assert all(Path(dataset.name).is_dir() for dataset in done.outputs)
    assert all(Path(dataset.name).is_relative_to(data_root) for dataset in done.outputs)


@pytest.mark.parametrize("end", ["skipped", "failed"])
def test_what_was_skipped_or_failed_has_written_nothing(cell: dict[str, object], end: str) -> None:
    from tidebench.batch import MeasureCell

    task, ti = MeasureCell(task_id="measure_cell", cell=cell), SimpleNamespace(state=end)
    ask = {
        "skipped": task.get_openlineage_facets_on_complete,
        "failed": task.get_openlineage_facets_on_failure,
    }
    assert ask[end](ti).outputs == []


def test_a_verdict_writes_what_the_next_night_is_held_against(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidebench.studies import CheckVerdict

    monkeypatch.setenv("TIDEBENCH_DATA_ROOT", str(data_root))
    task = CheckVerdict(task_id="check_verdict", experiment="nightly_peerj141")
    done = task.get_openlineage_facets_on_complete(SimpleNamespace(state="success"))
    (written,) = done.outputs
    assert written.name == str(data_root / "nightly_peerj141" / "tonight")
