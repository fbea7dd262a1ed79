"""What goes wrong under a real scheduler, and that the measurements are the same all the same.

In the order of the file; every run is short and simulated. `make test-scheduler`.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from include.experiment.params import matrix_from_params, run_from_params
from include.runs.stages import run_all
from tests.e2e.airflow_services import Airflow, kill_task
from tests.e2e.dag_process import measured

pytestmark = pytest.mark.scheduler

DEADLINE_S = 600.0
CONTROL = "control_window"
LONG = {"experiment": "long", "duration_min": 12, "btu_min": 2, "seed": 7}
NOT_REPORTED = {"report": False}


def alone(form: dict[str, Any], root: Path) -> dict[str, str]:
    """What the stages measure in one process, without Airflow."""
    run_all(run_from_params(form), root)
    return measured(root / form["experiment"])


def test_windows_go_on_in_order_after_a_killed_worker_and_a_restarted_scheduler(
    airflow: Airflow, root: Path, tmp_path: Path
) -> None:
    run = airflow.trigger("experiment", LONG | NOT_REPORTED, "long")
    airflow.until("experiment", run, lambda states: states.get((CONTROL, 1)) == "running")
    assert kill_task(airflow.processes["scheduler"].pid), "no task was under way"
    airflow.until("experiment", run, lambda states: states.get((CONTROL, 3)) == "running")
    airflow.kill("scheduler")
    time.sleep(2)
    airflow.start("scheduler")
    assert airflow.finish("experiment", run, DEADLINE_S) == "success", airflow.tail()

    windows = [task for task in airflow.tasks("experiment", run) if task["task_id"] == CONTROL]
    windows.sort(key=lambda task: task["map_index"])
    assert [task["state"] for task in windows] == ["success"] * 6
    times = [time_s for task in windows for time_s in (task["start_date"], task["end_date"])]
    assert times == sorted(times)
    assert [task["rendered_map_index"] for task in windows][:2] == [
        "window 000, minute 0 to 2",
        "window 001, minute 2 to 4",
    ]
    assert any(task["try_number"] > 1 for task in airflow.tasks("experiment", run))
    assert measured(root / "long") == alone(LONG, tmp_path)


def test_a_cleared_window_and_a_run_measured_anew_give_the_same_bytes(
    airflow: Airflow, root: Path
) -> None:
    run = "long"
    before = measured(root / "long")
    airflow.clear("experiment", run, CONTROL, 2)
    assert airflow.finish("experiment", run, DEADLINE_S) == "success", airflow.tail()
    assert measured(root / "long") == before

    shutil.rmtree(root / "long")
    airflow.clear("experiment", run, "resolve_spec")
    assert airflow.finish("experiment", run, DEADLINE_S) == "success", airflow.tail()
    assert measured(root / "long") == before


def test_a_run_that_is_ended_by_hand_releases_its_testbed_and_can_go_on(
    airflow: Airflow, root: Path, tmp_path: Path
) -> None:
    form = LONG | {"experiment": "ended"}
    run = airflow.trigger("experiment", form | NOT_REPORTED)
    airflow.until("experiment", run, lambda states: states.get((CONTROL, 1)) == "running")
    airflow.end_by_hand("experiment", run)
    assert airflow.finish("experiment", run, DEADLINE_S) == "failed", airflow.tail()
    assert "testbed is released" in airflow.log_of("experiment", run, "release_testbed")
    states = airflow.states("experiment", run)
    assert states[CONTROL, 5] == "failed"  # all copies of what was under way
    assert states["release_testbed", -1] == "success"
    assert states["publish_report", -1] == "failed"

    airflow.clear("experiment", run, "resolve_spec")
    assert airflow.finish("experiment", run, DEADLINE_S) == "success", airflow.tail()
    assert measured(root / "ended") == alone(form, tmp_path)


def test_runs_side_by_side_do_not_disturb_each_other(
    airflow: Airflow, root: Path, tmp_path: Path
) -> None:
    """Those of one experiment follow each other, because they publish the same report."""
    short = {"duration_min": 4, "btu_min": 2}
    forms = [
        {"experiment": "alone", **short} | NOT_REPORTED,
        {"experiment": "shared", **short, "seed": 1},
        {"experiment": "shared", **short, "seed": 2},
    ]
    matrix = {"experiment": "beside", "duration_min": 4, "btus_min": ["2"], "seeds": ["1, 2"]}
    triggered = [("experiment", airflow.trigger("experiment", form)) for form in forms]
    triggered.append(("experiment_batch", airflow.trigger("experiment_batch", matrix)))
    for dag, dag_run in triggered:
        assert airflow.finish(dag, dag_run, DEADLINE_S) == "success", airflow.tail()

    (alone_begins, alone_ends), *shared = (
        at_work(airflow, dag_run) for _, dag_run in triggered[:3]
    )
    (begins, ends), (next_begins, next_ends) = sorted(shared)
    assert ends <= next_begins
    assert alone_begins < next_ends
    assert begins < alone_ends

    for run in [*map(run_from_params, forms), *matrix_from_params(matrix, most_cells=4)]:
        run_all(run, tmp_path)
    for name in ("alone", "shared", "beside"):
        assert measured(root / name) == measured(tmp_path / name)


def at_work(airflow: Airflow, dag_run: str) -> tuple[str, str]:
    """When a run of `experiment` was provisioned, and when the last of its tasks ended."""
    tasks = {task["task_id"]: task for task in airflow.tasks("experiment", dag_run)}
    ended = [task["end_date"] for task in tasks.values() if task["end_date"]]
    return tasks["provision_testbed"]["start_date"], max(ended)
