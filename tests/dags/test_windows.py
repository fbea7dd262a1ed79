"""Whose turn it is among the windows, at a run that really is where the test says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from include.experiment.params import run_from_params
from include.experiment.spec import RunSpec
from include.runs.stages import control_windows, deploy, provision, replay_arrivals
from tests.dags.ends import execute, fails_for_good


@pytest.fixture
def root(data_root: Path) -> Path:
    """A data root with a run of six windows, of which the first is committed."""
    for stage in (provision, deploy, replay_arrivals):
        stage(a_run(), data_root)
    control_windows(a_run(), data_root, 0, 0)
    return data_root


def a_run() -> RunSpec:
    return run_from_params({"experiment": "order", "duration_min": 6, "btu_min": 1})


def begin(index: int, *, user: str | None = None, **states: str | None) -> Any:
    """The summary of the window, or what its task raises."""
    from tidebench.windows import ControlWindow

    task = ControlWindow(
        task_id="control_window",
        run=a_run().to_json(),
        window={"index": index, "name": f"window {index}"},
    )
    return execute(task, user=user, states=states)


def seconds_until_it_looks_again(index: int, **more: Any) -> float:
    from airflow.sdk.exceptions import AirflowRescheduleException

    before = datetime.now(UTC)
    with pytest.raises(AirflowRescheduleException) as raised:
        begin(index, **more)
    return (raised.value.reschedule_date - before).total_seconds()


def test_windows_are_measured_in_order_and_a_committed_one_is_only_read(root: Path) -> None:
    assert [begin(index)["window"] for index in (0, 1, 2, 1)] == [0, 1, 2, 1]


@pytest.mark.parametrize("state", [None, "up_for_retry", "running", "queued", "scheduled"])
def test_a_window_makes_way_for_one_before_it_that_is_retried(
    root: Path, state: str | None
) -> None:
    from tidebench.windows import OUT_OF_TURN_S

    assert seconds_until_it_looks_again(3, control_window_1=state) >= OUT_OF_TURN_S
    assert not (root / "order" / "runs" / a_run().run_id / "commits" / "003.json").exists()


def test_a_copy_that_dags_test_begins_too_early_brings_along_those_before_it(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert [begin(index, user="dag_test")["window"] for index in (3, 1, 2, 5)] == [3, 1, 2, 5]
    told = re.findall(r"tidebench: window (\d+)", capfd.readouterr().out)
    assert told == ["001", "002", "003", "004", "005"]


def test_after_a_failure_no_copy_brings_along_others(root: Path) -> None:
    assert seconds_until_it_looks_again(4, user="dag_test", control_window_3="up_for_retry") > 0
    with fails_for_good(match="window 1 ended without a commit"):
        begin(4, user="dag_test", control_window_3="failed")
    assert begin(1, user="dag_test", control_window_3="failed")["window"] == 1


@pytest.mark.parametrize("state", ["failed", "upstream_failed", "skipped", "success"])
def test_a_window_behind_one_that_ended_without_a_commit_fails_at_once(
    root: Path, state: str
) -> None:
    with fails_for_good(match=r"window 1 .*clear the failed tasks"):
        begin(3, control_window_1=state, control_window_2="running")


def test_a_failure_further_on_does_not_matter(root: Path) -> None:
    assert begin(1, control_window_0="success", control_window_4="failed")["window"] == 1
