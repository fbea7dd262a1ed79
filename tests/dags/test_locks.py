"""Whose turn it is: of two DAG runs that would change the same one waits, others do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dags.ends import execute

States = dict[str, str]


@pytest.fixture
def under_way(dag_runs: States) -> States:
    """States of the DAG runs that are under way; taking one out ends it."""
    dag_runs.update(first="running", second="queued", third="running")
    return dag_runs


def passes(
    dag_run: str,
    seed: int,
    *,
    experiment: str = "shared",
    report: bool = True,
    user: str = "someone",
    places: int = 0,
) -> bool:
    """Whether the DAG run that measures the run of this seed has its turn."""
    from airflow.sdk.exceptions import TaskDeferred

    from tidebench.locks import AcquireExperimentLock

    task = AcquireExperimentLock(
        task_id="wait_for_turn", experiment=experiment, places=places, run_ids=[f"seed-{seed}"]
    )
    try:
        execute(task, run_id=dag_run, user=user, params={"report": report})
    except TaskDeferred:
        return False
    return True


def test_of_one_experiment_the_second_waits_until_the_first_is_over(
    under_way: States,
) -> None:
    assert passes("first", 1)
    assert passes("first", 1), "a retry has it already"
    assert not passes("second", 2)
    under_way.pop("first")
    assert passes("second", 2)
    assert not passes("third", 3)


def test_experiments_go_on_side_by_side(under_way: States) -> None:
    assert passes("first", 1, experiment="mine")
    assert passes("second", 1, experiment="yours")


def test_without_a_report_only_the_same_run_is_waited_for(under_way: States) -> None:
    assert passes("first", 1)
    assert passes("second", 2, report=False)
    assert not passes("third", 2, report=False)
    assert not passes("third", 1, report=False)
    under_way.pop("second")
    assert passes("third", 2, report=False)


def test_who_has_to_wait_takes_nothing_meanwhile(under_way: States) -> None:
    assert passes("first", 1, report=False)
    assert not passes("second", 1), "its run is taken, its report is free"
    assert passes("third", 3)


def test_what_is_tried_on_the_command_line_neither_waits_nor_is_waited_for(
    under_way: States,
) -> None:
    assert passes("first", 1, user="dag_test")
    assert passes("second", 1)
    assert passes("third", 1, user="dag_test")


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"report": 3}', "\x00\x00"])
def test_a_file_that_a_power_cut_has_damaged_is_nobodys_turn(
    damage: str, under_way: States, data_root: Path
) -> None:
    assert passes("first", 1)
    (data_root / "shared" / "turns.json").write_text(damage)
    assert passes("second", 2)
    assert not passes("third", 3), "the file is whole again"


def test_so_many_measure_at_a_time_whatever_their_experiments(under_way: States) -> None:
    assert passes("first", 1, experiment="mine", places=2)
    assert passes("second", 1, experiment="yours", places=2)
    assert passes("second", 1, experiment="yours", places=2), "a retry has its place already"
    assert not passes("third", 1, experiment="theirs", places=2)
    under_way.pop("first")
    assert passes("third", 1, experiment="theirs", places=2)


def test_who_waits_for_a_report_takes_no_place_from_those_who_bring_it(
    under_way: States,
) -> None:
    assert passes("first", 1), "a matrix"
    assert not passes("second", 2, places=1), "its report is taken"
    assert passes("third", 3, report=False, places=1), "a cell of the matrix"
