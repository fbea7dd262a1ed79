"""An executor that reports every end twenty seconds late fails no task, and costs no try.

A task that is queued again in the same try fails then ("state mismatch", apache/airflow issue
71172). Nothing that belongs to a healthy run may be. `make test-scheduler`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.airflow_services import Airflow, airflow_services, migrated

pytestmark = pytest.mark.scheduler

DEADLINE_S = 1800.0
SHORT = {"duration_min": 5, "btu_min": 1, "controller": "fixed"}


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Services and a database of their own: another scheduler would not be late."""
    executor = {"AIRFLOW__CORE__EXECUTOR": "tests.e2e.late_executor.LateExecutor"}
    data = {"TIDEBENCH_DATA_ROOT": str(tmp_path_factory.mktemp("late_data"))}
    folder = tmp_path_factory.mktemp("late_services")
    environment = migrated(tmp_path_factory.mktemp("late_airflow")) | data
    with airflow_services(environment, folder, ["experiment"], settings=executor) as services:
        yield services


def mismatches(airflow: Airflow) -> list[str]:
    """Ends of tasks that the scheduler did not expect and failed them for, of any DAG run."""
    log = (airflow.logs / "scheduler.log").read_text().splitlines()
    return [line for line in log if "but the task instance's state attribute is" in line]


def ended_well(airflow: Airflow, run: str) -> list[dict[str, Any]]:
    """The tasks of a DAG run that did something."""
    assert airflow.finish("experiment", run, DEADLINE_S) == "success", airflow.tail()
    return [task for task in airflow.tasks("experiment", run) if task["state"] == "success"]


def test_windows_and_turns_need_one_try(late: Airflow) -> None:
    # The second waits until the first is over; nothing is to report, so that it is soon.
    form = SHORT | {"experiment": "late", "report": False}
    first, second = (late.trigger("experiment", form) for _ in range(2))
    tasks = ended_well(late, first) + ended_well(late, second)
    assert {task["task_id"]: task["try_number"] for task in tasks if task["try_number"] > 1} == {}
    assert mismatches(late) == []
    assert "executor_state=success" in (late.logs / "scheduler.log").read_text()

    windows = [task for task in tasks if task["task_id"] == "control_window"]
    assert [task["map_index"] for task in sorted(windows, key=lambda task: task["start_date"])] == [
        *range(5),
        *range(5),
    ]
    logs = [late.log_of("experiment", run, "wait_for_turn") for run in (first, second)]
    assert any("waiting until it is over" in log for log in logs), "nobody had to wait"
