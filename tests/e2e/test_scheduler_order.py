"""Two hundred windows under a real scheduler whose machine is busy: in order, at the first try.

The executor reports the end of a task late then, which fails one that is queued again in the same
try (apache/airflow issue 71172). Nothing that belongs to a healthy run is. `make test-scheduler`.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.airflow_services import Airflow

pytestmark = pytest.mark.scheduler

DEADLINE_S = 3600.0
WINDOWS = 200
MANY = {
    "experiment": "many",
    "duration_min": 50,
    "btu_min": 0.25,
    "controller": "fixed",
    "report": False,
}
SHARED = {"experiment": "shared_turn", "duration_min": 1, "btu_min": 0.25, "controller": "fixed"}


def spin() -> None:
    while True:
        pass


@contextmanager
def busy_cores() -> Iterator[None]:
    """As many processes that compute as there are cores."""
    spawning = multiprocessing.get_context("spawn")
    burners = [spawning.Process(target=spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for burner in burners:
        burner.start()
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.join()


def mismatches(airflow: Airflow) -> list[str]:
    """What the scheduler calls an end of a task that it did not expect, for any DAG run."""
    log = (airflow.logs / "scheduler.log").read_text().splitlines()
    return [line for line in log if "but the task instance's state attribute is" in line]


def test_windows_and_waits_need_one_try_on_busy_cores(airflow: Airflow, root: Path) -> None:
    with busy_cores():
        first, second = (
            airflow.trigger("experiment", SHARED | {"seed": seed}) for seed in (1, 2)
        )  # of which one waits for the other, tables and all
        many = airflow.trigger("experiment", MANY)
        for run in (first, second, many):
            assert airflow.finish("experiment", run, DEADLINE_S) == "success", airflow.tail()

    windows = [task for task in airflow.tasks("experiment", many) if task["map_index"] >= 0]
    windows.sort(key=lambda task: task["map_index"])
    assert len(windows) == WINDOWS
    times = [time_s for task in windows for time_s in (task["start_date"], task["end_date"])]
    assert times == sorted(times), "windows overlap, or are not in order"
    tasks = [task for run in (first, second, many) for task in airflow.tasks("experiment", run)]
    ran = [task for task in tasks if task["state"] == "success"]
    tries = {(task["task_id"], task["map_index"]): task["try_number"] for task in ran}
    assert {task: tries[task] for task in tries if tries[task] > 1} == {}
    assert mismatches(airflow) == []
    logs = [airflow.log_of("experiment", run, "wait_for_turn") for run in (first, second)]
    assert any("waiting until it is over" in log for log in logs), "nobody had to wait"
