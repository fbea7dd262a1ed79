"""Every DAG under a real scheduler with LocalExecutor: what `airflow dags test` cannot show.

Takes minutes, so it has a marker of its own: `make test-scheduler`.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from include.experiment.matrix import runs_in_file
from include.experiment.params import matrix_from_params
from include.experiment.spec import RunSpec
from include.results.tables.staged import read_table
from include.runs.spark.sweep import STATUS
from include.runs.stages import run_all, store_of
from include.runs.stored import mark_code
from tests.e2e.airflow_services import Airflow
from tests.e2e.dag_process import measured

pytestmark = pytest.mark.scheduler

DEADLINE_S = 900.0
NIGHT_S = 3600.0
SHORT = {"duration_min": 4, "btus_min": [2]}
MATRIX = {
    "experiment": "small",
    "controllers": ["btu", "threshold"],
    "patterns": ["random_walk_1"],
    "seeds": [1, 2],
    **SHORT,
}
WAIT = "cell_run.wait_for_run"


def reported(root: Path, experiment: str) -> set[str]:
    return {row["run"] for row in read_table(root / experiment / "published" / "runs.parquet")}


def assert_as_alone(runs: list[RunSpec], root: Path, alone: Path) -> None:
    """The bytes in the store are those of the stages in one process."""
    for run in runs:
        run_all(run, alone)
    experiment = runs[0].experiment
    assert measured(root / experiment) == measured(alone / experiment)


def test_a_cell_whose_dag_run_fails_is_reported_and_measured_alone_once_cleared(
    airflow: Airflow, root: Path, tmp_path: Path
) -> None:
    cells = matrix_from_params(MATRIX, most_cells=4)
    broken = cells[2]
    mark_code(store_of(broken, root), broken)
    store_of(broken, root).run_json.write_text("{}")

    batch = airflow.trigger("experiment_batch", MATRIX | {"each_cell": "dag_run"})
    assert airflow.finish("experiment_batch", batch, DEADLINE_S) == "failed", airflow.tail()
    states = airflow.states("experiment_batch", batch)
    ends = ["success", "success", "failed", "success"]
    assert [states[WAIT, index] for index in range(4)] == ends
    assert states["measure_cell", -1] == "skipped"
    assert states["check_cells", -1] == "failed"
    assert states["publish_report", -1] == "failed"  # after it has published the others
    for task in ("check_cells", "publish_report"):
        assert broken.run_id in airflow.log_of("experiment_batch", batch, task)
    assert "clear the trigger task" in airflow.log_of("experiment_batch", batch, WAIT, 2)
    assert reported(root, "small") == {cell.run_id for cell in cells if cell != broken}

    begun = airflow.runs("experiment")
    assert {run for run in begun if run.startswith("small.")} == {
        f"small.{cell.run_id}" for cell in cells
    }
    store_of(broken, root).run_json.unlink()
    airflow.clear("experiment_batch", batch, "cell_run.trigger_run", 2)
    assert airflow.finish("experiment_batch", batch, DEADLINE_S) == "success", airflow.tail()
    again = airflow.runs("experiment")
    assert {run for run in begun if again[run] != begun[run]} == {f"small.{broken.run_id}"}
    assert reported(root, "small") == {cell.run_id for cell in cells}
    assert_as_alone(cells, root, tmp_path)


def test_a_sweep_measures_every_point_and_publishes(
    airflow: Airflow, root: Path, tmp_path: Path
) -> None:
    spec = tmp_path / "swept.yaml"
    controller = {"name": "btu", "scaling_threshold_items": {"sweep": [10, 1000]}}
    content = {"name": "swept", "controllers": controller, "patterns": "stepwise", **SHORT}
    spec.write_text(json.dumps(content), encoding="utf-8")
    run = airflow.trigger("sweep", {"spec": str(spec)})
    assert airflow.finish("sweep", run, DEADLINE_S) == "success", airflow.tail()
    points = runs_in_file(spec)
    with (root / "swept" / STATUS).open(encoding="utf-8") as file:
        assert [row["outcome"] for row in csv.DictReader(file)] == ["measured"] * 2
    assert reported(root, "swept") == {point.run_id for point in points}
    assert_as_alone(points, root, tmp_path)


def test_what_could_have_a_schedule_runs_when_it_is_triggered_and_only_then(
    airflow: Airflow,
) -> None:
    """Nobody has unpaused it, and it begins nothing else."""
    run = airflow.trigger("reap", {})
    assert airflow.finish("reap", run, DEADLINE_S) == "success", airflow.tail()
    assert list(airflow.runs("reap")) == [run]
    assert airflow.states("reap", run)["release_dead", -1] == "skipped"


def test_a_night_is_judged_and_held_against_the_night_before(airflow: Airflow, root: Path) -> None:
    dag, folder = "nightly_reproducibility", root / "nightly_peerj141"
    first = airflow.trigger(dag, {})
    assert airflow.finish(dag, first, NIGHT_S) == "success", airflow.tail()
    log = airflow.log_of(dag, first, "check_verdict", 0)
    assert "Against the committed baseline: no cell moved" in log

    second = airflow.trigger(dag, {"strict": True})
    assert airflow.finish(dag, second, NIGHT_S) == "failed", airflow.tail()
    states = airflow.states(dag, second)
    assert {task for (task, _), state in states.items() if state != "success"} == {"check_verdict"}
    log = airflow.log_of(dag, second, "check_verdict", 0)
    assert "Bit-identical to the stored baseline" in log
    assert "The paper is not reproduced" in log
    files = {path.name for path in (folder / "published").iterdir()}
    assert files >= {"cells.csv", "verdict.csv", "claims.csv", "drift.csv", "report.html"}
    assert not (root / "reproduction").exists()


def test_a_small_night_is_published_apart_and_judges_nothing(airflow: Airflow, root: Path) -> None:
    dag = "nightly_reproducibility"
    night = airflow.trigger(dag, {"seeds": "25", "patterns": ["stepwise"]})
    assert airflow.finish(dag, night, NIGHT_S) == "success", airflow.tail()
    published = root / "nightly_peerj141_part" / "published"
    assert (published / "report.html").is_file()
    assert "nothing is judged by it" in airflow.log_of(dag, night, "check_verdict", 0)
