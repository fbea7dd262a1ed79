"""Cells as DAG runs: triggered once, waited for with a deadline, cleared alone when they fail."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from include.experiment import params, problems, size
from include.experiment.form import BY_TESTBED
from include.experiment.params import (
    matrix_from_params,
    params_from_run,
    run_from_params,
    way_of,
)
from include.experiment.spec import SPECS, Choice, RunSpec, load_spec
from include.model.errors import SpecError
from include.runs.stages import run_all
from include.testbeds import TESTBEDS
from tests.builders import run_spec
from tests.dags.ends import execute, fails_for_good

RUN = run_spec(experiment="cells", controller="fixed", btu_min=1, duration_min=2)
CELL = {"name": RUN.run_id, "runs": [RUN.to_json()]}
DAG_RUN = f"cells.{RUN.run_id}"
States = dict[str, str]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> RunSpec:
    """A run on the simulator, registered once more as if it ran in real time."""
    slow = {"slow": replace(TESTBEDS["simulated"], real_time=True)}
    monkeypatch.setattr(params, "TESTBEDS", {**TESTBEDS, **slow})
    monkeypatch.setattr(problems, "TESTBEDS", params.TESTBEDS)
    monkeypatch.setattr(size, "TESTBEDS", params.TESTBEDS)
    return replace(RUN, testbed="slow")


def known(dag_runs: States, state: str | None) -> None:
    """Airflow knows the DAG run of the cell in this state; with None it knows none."""
    dag_runs.clear()
    if state:
        dag_runs[DAG_RUN] = state


def trigger(dag_runs: States, state: str | None, **more: Any) -> dict[str, Any] | None:
    """What is asked of Airflow; None when the cell is left alone."""
    from airflow.sdk.exceptions import DagRunTriggerException

    from tidebench.runs import TriggerRun

    known(dag_runs, state)
    try:
        execute(TriggerRun(task_id="trigger_run", cell=CELL), **more)
    except DagRunTriggerException as asked:
        return vars(asked)
    return None


def wait(dag_runs: States, state: str | None) -> None:
    from tidebench.runs import WaitForRun

    known(dag_runs, state)
    execute(WaitForRun(task_id="wait_for_run", cell=CELL, cells=[CELL, CELL]))


@pytest.mark.parametrize("state", [None, "failed"])
def test_a_cell_is_triggered_under_the_id_of_its_run_and_cleared_when_it_failed(
    dag_runs: States, state: str | None
) -> None:
    asked = trigger(dag_runs, state)
    assert asked is not None
    assert (asked["trigger_dag_id"], asked["dag_run_id"]) == ("experiment", DAG_RUN)
    assert asked["reset_dag_run"]
    assert not asked["wait_for_completion"]
    assert run_from_params(asked["conf"]) == RUN
    assert asked["conf"]["report"] is False


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_cell_that_is_under_way_is_left_alone(dag_runs: States, state: str) -> None:
    assert trigger(dag_runs, state) is None


def test_a_complete_cell_is_reused_unless_its_dag_run_failed(
    dag_runs: States, data_root: Path
) -> None:
    run_all(RUN, data_root)
    assert trigger(dag_runs, None) is None
    assert trigger(dag_runs, "success") is None
    assert trigger(dag_runs, "failed") is not None, "its testbed may not have been released"


def test_a_complete_cell_of_other_code_is_triggered_again(
    dag_runs: States, data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from include.runs import stored

    run_all(RUN, data_root)
    monkeypatch.setattr(stored, "code_digest", lambda _: "other code")
    assert trigger(dag_runs, "success") is not None


def test_a_paused_dag_is_an_error_and_no_endless_wait(dag_runs: States) -> None:
    with fails_for_good(match=r"experiment is paused.*unpause it"):
        trigger(dag_runs, None, paused=True)


def test_dags_test_does_not_wait_for_what_nobody_begins(dag_runs: States, data_root: Path) -> None:
    with fails_for_good(match="choose task for each_cell"):
        trigger(dag_runs, None, user="dag_test")
    run_all(RUN, data_root)
    assert trigger(dag_runs, None, user="dag_test") is None


def test_waiting_ends_when_the_dag_run_has_ended_and_the_cell_is_complete(
    dag_runs: States, data_root: Path
) -> None:
    run_all(RUN, data_root)
    wait(dag_runs, "success")
    wait(dag_runs, None)


@pytest.mark.parametrize("state", ["failed", "success", None])
def test_a_cell_that_its_dag_run_did_not_measure_fails_with_what_to_do(
    dag_runs: States, state: str | None
) -> None:
    with fails_for_good(match=f"(?s){DAG_RUN}.*clear the trigger task"):
        wait(dag_runs, state)


@pytest.mark.parametrize("name", sorted(path.stem for path in SPECS.glob("*.yaml")))
def test_the_form_of_a_dag_run_gives_the_run_of_its_cell(name: str) -> None:
    spec = load_spec(SPECS / f"{name}.yaml")
    for run in spec.model_copy(update={"seeds": spec.seeds[-1:]}).points():
        assert run_from_params(params_from_run(run)) == run


def test_every_field_of_a_run_is_in_the_form_of_its_dag_run() -> None:
    run = RunSpec(
        experiment="all", controller="threshold", pattern="constant", btu_min=1.5, seed=7,
        duration_min=12.25, topology="manufacturing_preprint", flavor="docker-3cpu-5gb",
        calibration="manufacturing_live", controller_options={"scale_up_above_items": 100},
        pattern_options={"level": 6}, faults={"host_losses_per_hour": 0.5},
        price_books=("btu10",), monitor_every_s=5.0, hosts=2, max_hosts=7,
        advisors=(Choice("tide", {"care": 2.0}),),
        summaries_only=True,
    )  # fmt: skip
    assert run_from_params(params_from_run(run)) == run
    plain = {name for name, value in asdict(run).items() if value == getattr(RUN, name)}
    assert plain == {"testbed"}, "every other field differs from its default"


def test_the_testbed_decides_how_cells_are_measured(slow: RunSpec) -> None:
    assert way_of([RUN], BY_TESTBED) == "task"
    assert way_of([RUN, slow], BY_TESTBED) == "dag_run"
    assert [way_of([slow], way) for way in ("task", "dag_run")] == ["task", "dag_run"]


def test_a_run_that_takes_hours_is_no_task(slow: RunSpec) -> None:
    with pytest.raises(SpecError, match=r"on the testbed slow .* choose dag_run or by testbed"):
        matrix_from_params({"testbed": "slow", "each_cell": "task"}, most_cells=9)
    assert matrix_from_params({"testbed": "slow", "duration_min": 60}, most_cells=9)


def test_a_dag_run_has_as_many_windows_as_airflow_maps_and_none_of_days(slow: RunSpec) -> None:
    params = {"btu_min": 1, "duration_min": 20}
    assert run_from_params(params, 20).windows == 20
    with pytest.raises(SpecError, match=r"at most 19 .* these would be 20; take a longer BTU"):
        run_from_params(params, 19)
    cells = {"btus_min": [1], "duration_min": 20}
    assert matrix_from_params(cells, most_cells=19)  # each is a task
    with pytest.raises(SpecError, match="these would be 20"):
        matrix_from_params({**cells, "each_cell": "dag_run"}, most_cells=19)
    days = {"btu_min": 2880, "duration_min": 2880}
    assert run_from_params(days)
    with pytest.raises(SpecError, match="in real time a task takes as long as a BTU, at most 1440"):
        run_from_params({**days, "testbed": "slow"})


def test_a_way_that_is_unknown_is_refused() -> None:
    with pytest.raises(SpecError, match="Did you mean 'dag_run'"):
        matrix_from_params({"each_cell": "dag_runs"}, most_cells=9)
