"""Waiting in the triggerer: it ends there, so that no task is queued twice in one try."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from include.model.errors import StoreError
from include.runs.stages import run_all
from tests.builders import run_spec
from tests.dags.ends import execute

RUN = run_spec(experiment="waits", controller="fixed", btu_min=1, duration_min=2)
CELL = {"name": RUN.run_id, "runs": [RUN.to_json()]}


@pytest.fixture
def states(dag_runs: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """States of DAG runs by their ids; the triggerer looks again at once."""
    from tidebench import waiting

    monkeypatch.setattr(waiting, "POLL_EVERY_S", 0.0)
    return dag_runs


def defer(task: Any, dag_run: str) -> Any:
    """What the task leaves to the triggerer."""
    from airflow.sdk.exceptions import TaskDeferred

    with pytest.raises(TaskDeferred) as raised:
        execute(task, run_id=dag_run)
    return raised.value


def in_triggerer(trigger: Any) -> Any:
    """The trigger as the triggerer makes it again from what is stored."""
    path, about = trigger.serialize()
    module, name = path.rsplit(".", 1)
    return getattr(import_module(module), name)(**about)


def wait_for_turn(dag_run: str) -> Any:
    from tidebench.locks import AcquireExperimentLock

    task = AcquireExperimentLock(task_id="wait_for_turn", experiment="waits", run_ids=[RUN.run_id])
    return defer(task, dag_run)


def wait_for_run() -> Any:
    from tidebench.runs import WaitForRun

    task = WaitForRun(task_id="wait_for_run", cell=CELL, cells=[CELL, CELL])
    return defer(task, "matrix")


def hold_the_turn(states: dict[str, str]) -> None:
    from tidebench.locks import Holder, acquire
    from tidebench.stage import data_root

    states["first"] = "running"
    acquire(data_root() / "waits" / "turns.json", ["report"], Holder("experiment", "first"), bool)


async def event_after(trigger: Any, looks: int, then: Any) -> Any:
    """The event of a trigger for which something happens after it has looked so many times."""
    passes, count = trigger.passes, 0

    def counted() -> bool:
        nonlocal count
        count += 1
        if count > looks:
            then()
        return bool(passes())

    trigger.passes = counted
    events = [event async for event in trigger.run()]
    assert count == looks + 1
    (event,) = events
    return event


def test_a_turn_is_taken_in_the_triggerer_which_ends_the_task(states: dict[str, str]) -> None:
    from airflow.triggers.base import TaskSuccessEvent

    hold_the_turn(states)
    trigger = in_triggerer(wait_for_turn("second").trigger)
    states["second"] = "running"
    event = asyncio.run(event_after(trigger, 3, lambda: states.update(first="success")))
    assert isinstance(event, TaskSuccessEvent)
    wait_for_turn("third")  # the second has it now


def test_a_cell_ends_in_the_triggerer_once_it_is_measured(
    states: dict[str, str], data_root: Path
) -> None:
    from airflow.triggers.base import TaskSuccessEvent

    from tidebench.locks import A_PLACE
    from tidebench.runs import allowed_s, dag_run_of

    states[dag_run_of(RUN)] = "queued"
    deferred = wait_for_run()
    assert deferred.timeout.total_seconds() == A_PLACE["timeout"] + 2 * allowed_s(RUN)

    def measure() -> None:
        run_all(RUN, data_root)
        states[dag_run_of(RUN)] = "success"

    event = asyncio.run(event_after(in_triggerer(deferred.trigger), 2, measure))
    assert isinstance(event, TaskSuccessEvent)


def test_a_cell_whose_dag_run_failed_fails_in_the_triggerer(states: dict[str, str]) -> None:
    from airflow.triggers.base import TaskFailedEvent

    from tidebench.runs import dag_run_of

    states[dag_run_of(RUN)] = "running"
    trigger = in_triggerer(wait_for_run().trigger)
    event = asyncio.run(event_after(trigger, 1, lambda: states.update({dag_run_of(RUN): "failed"})))
    assert isinstance(event, TaskFailedEvent)


@pytest.mark.parametrize("error", [OSError("no route"), RuntimeError("locked"), StoreError("torn")])
def test_a_look_that_fails_is_no_end_of_the_wait(
    error: Exception, states: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.triggers.base import TaskSuccessEvent

    from tidebench import locks

    hold_the_turn(states)
    trigger = in_triggerer(wait_for_turn("second").trigger)
    failing = [error, error]

    def count(dag_id: str, run_id: str, *wanted: str) -> int:
        if failing:
            raise failing.pop()
        return int(states.get(run_id) in wanted)

    monkeypatch.setattr(locks, "count_dag_runs", count)
    event = asyncio.run(event_after(trigger, 3, lambda: states.update(first="success")))
    assert isinstance(event, TaskSuccessEvent)
    assert trigger.logged >= {repr(error)}
