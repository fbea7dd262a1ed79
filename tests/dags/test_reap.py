"""The tasks of the DAG `reap`, on a run that has died here."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.dags.ends import execute, fails_for_good, is_skipped


@pytest.fixture
def dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that nobody has looked after for an hour."""
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    folder = tmp_path / "runs" / "a-run"
    folder.mkdir(parents=True)
    heartbeat = folder / "heartbeat"
    heartbeat.touch()
    os.utime(heartbeat, (time.time() - 3600,) * 2)
    return folder


def run(task: Any, **params: object) -> Any:
    return execute(task, params={"after_min": 10, "remove": False, **params})


def test_dead_runs_are_listed_and_stay(dead: Path) -> None:
    from tidebench.reap import CheckLeases, ReleaseDead

    assert run(CheckLeases(task_id="check_leases")) == 1
    assert run(CheckLeases(task_id="check_leases"), after_min=100) == 0
    with is_skipped(match="only listed"):
        run(ReleaseDead(task_id="release_dead"))
    assert dead.is_dir()


def test_what_dead_runs_hold_is_given_back_when_the_run_of_the_dag_says_so(dead: Path) -> None:
    from tidebench.reap import ReleaseDead

    assert run(ReleaseDead(task_id="release_dead"), after_min=100, remove=True) == 0
    assert dead.is_dir()
    assert run(ReleaseDead(task_id="release_dead"), remove=True) == 1
    assert not dead.exists()


@pytest.mark.parametrize("after_min", [0, -5, 0.5])
def test_nobody_is_dead_after_less_than_a_minute(dead: Path, after_min: float) -> None:
    from tidebench.reap import CheckLeases, ReleaseDead

    for task in (CheckLeases(task_id="check_leases"), ReleaseDead(task_id="release_dead")):
        with fails_for_good(match="after_min must be at least 1, got"):
            run(task, after_min=after_min, remove=True)
    assert dead.is_dir()
