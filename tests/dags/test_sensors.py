"""The gate of a window, at a run that really is where the test says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from include.control.stages import control_window, deploy, provision, replay_arrivals
from include.experiment.params import run_from_params
from include.experiment.spec import RunSpec

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("default"),  # Airflow warns about its own dependencies
]

POKE_INTERVAL_S = 5


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with a run of six windows, of which the first is committed."""
    root = tmp_path_factory.mktemp("data")
    for stage in (provision, deploy, replay_arrivals):
        stage(a_run(), root)
    control_window(a_run(), root, 0)
    return root


def a_run() -> RunSpec:
    return run_from_params({"experiment": "gate", "duration_min": 6, "btu_min": 1})


def poke(
    root: Path,
    index: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    user: str | None = None,
    **states: str,
) -> tuple[bool, float]:
    """Whether the window may begin, and otherwise the seconds until the next look."""
    from tidebench.sensors import WaitForWindow

    monkeypatch.setenv("TIDEBENCH_DATA_ROOT", str(root))
    sensor = WaitForWindow(
        task_id="wait",
        run=a_run().to_json(),
        window={"index": index, "name": f"window {index}"},
        poke_interval=POKE_INTERVAL_S,
    )
    ti = SimpleNamespace(
        dag_id="experiment",
        run_id="manual",
        task_id="window.wait",
        get_task_states=lambda **_: {"manual": states},
    )
    context: Any = {"ti": ti, "dag_run": SimpleNamespace(triggering_user_name=user)}
    return sensor.poke(context), sensor.poke_interval


@pytest.mark.parametrize("index", [0, 1])
def test_a_window_begins_once_the_one_before_it_is_committed(
    root: Path, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, _ = poke(root, index, monkeypatch)
    assert passed


@pytest.mark.parametrize(("index", "ahead"), [(2, 1), (3, 2), (5, 4)])
def test_a_window_further_ahead_looks_again_later(
    root: Path, index: int, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert poke(root, index, monkeypatch) == (False, ahead * POKE_INTERVAL_S)


def test_the_next_window_of_dags_test_looks_again_at_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert poke(root, 2, monkeypatch, user="dag_test") == (False, 0)


def test_a_window_after_a_failed_one_gives_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    states = {"window.control_1": "failed", "window.wait_2": "running"}
    with pytest.raises(AirflowFailException, match="clear the failed tasks"):
        poke(root, 2, monkeypatch, **states)


def test_a_failure_further_on_does_not_matter(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = {"window.control_0": "success", "window.wait_4": "upstream_failed"}
    assert poke(root, 2, monkeypatch, **states) == (False, POKE_INTERVAL_S)
