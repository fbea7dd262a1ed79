"""What the listener writes into DAG runs of Airflow's own, and which of them are listed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

CONF = {"experiment": "try-one", "controller": "threshold", "pattern": "stepwise", "seed": 1}
NAME = "try-one · threshold · stepwise · seed 1"


@pytest.mark.parametrize(
    ("dag_id", "before", "after"),
    [
        ("experiment", None, NAME),
        ("experiment", "Look at this.", f"{NAME}\n\nLook at this."),
        ("experiment", f"{NAME}\n\nOf a run that was cleared.", None),
        ("experiment", "x" * 1000, (f"{NAME}\n\n" + "x" * 1000)[:1000]),
        ("of_somebody_else", "Look at this.", None),
    ],
)
def test_a_dag_run_that_begins_has_its_name_first_in_its_note(
    dag_id: str, before: str | None, after: str | None
) -> None:
    from airflow.models.dagrun import DagRun

    from tidebench.listener import on_dag_run_running

    dag_run = DagRun(dag_id=dag_id, run_id="manual__1", conf=CONF, note=before)
    on_dag_run_running(dag_run, "started")
    assert dag_run.note == (before if after is None else after)


@pytest.mark.parametrize(
    ("dag_id", "name"),
    [
        ("experiment", "experiment · btu · random_walk_1 · seed 1"),
        ("shadow_report", "shadow · day before"),
        ("nightly_reproducibility", "reproducibility · peerj141"),
    ],
)
def test_a_dag_run_without_parameters_is_listed_under_its_defaults(dag_id: str, name: str) -> None:
    from tidebench.naming import name_of
    from tidebench.page.under_way import params_of

    assert name_of(dag_id, params_of(SimpleNamespace(dag_id=dag_id, conf=None))) == name


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """What the page lists of these DAG runs of the DAG ``experiment``, of all or one experiment."""
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun
    from sqlalchemy import create_engine, insert
    from sqlalchemy.orm import Session

    from tidebench.page import under_way

    monkeypatch.setattr(under_way, "may", lambda *_: True)
    dag = {
        "dag_id": "experiment", "is_paused": False, "bundle_name": "dags", "max_active_tasks": 1,
        "max_consecutive_failed_dag_runs": 0, "has_task_concurrency_limits": False,
    }  # fmt: skip
    now = datetime.now(UTC)
    usual = {
        "dag_id": "experiment", "run_type": "manual", "log_template_id": None, "run_after": now
    }  # fmt: skip

    def rows(dag_runs: list[dict[str, Any]], experiment: str = "") -> list[Any]:
        engine = create_engine("sqlite://")
        DagModel.metadata.create_all(engine, [DagModel.__table__, DagRun.__table__])
        with Session(engine) as session:
            session.execute(insert(DagModel.__table__), dag)
            session.execute(insert(DagRun.__table__), [usual | run for run in dag_runs])
            return under_way.dag_runs(session, None, now, experiment)

    return rows


def test_what_runs_is_listed_however_much_is_queued_after_it(
    listed: Callable[..., list[Any]],
) -> None:
    from tidebench.page.under_way import MOST_UNDER_WAY

    states = ["running", *["queued"] * MOST_UNDER_WAY]
    first, *others = listed([{"run_id": str(k), "state": state} for k, state in enumerate(states)])
    assert (first.run_id, first.state) == ("0", "running")
    assert len(others) == MOST_UNDER_WAY - 1


@pytest.mark.parametrize("state", ["queued", "failed"])
def test_an_experiment_has_its_own_however_many_of_others_came_later(
    listed: Callable[..., list[Any]], state: str
) -> None:
    """One that names no experiment is of the form's default one."""
    from tidebench.page import under_way

    of = ["mine"] * 2 + ["other"] * under_way.MOST_UNDER_WAY + ["mine", None]
    ended = datetime.now(UTC) - timedelta(hours=1)
    dag_runs = [
        {
            "run_id": str(k), "state": state, "conf": {"experiment": name} if name else {},
            "end_date": ended + timedelta(seconds=k),
        }
        for k, name in enumerate(of)
    ]  # fmt: skip
    assert [run.run_id for run in listed(dag_runs, "mine")] == [str(len(of) - 2), "1", "0"]
    assert [run.run_id for run in listed(dag_runs, "experiment")] == [str(len(of) - 1)]
    most = {"queued": under_way.MOST_UNDER_WAY, "failed": under_way.MOST_FAILED}
    assert len(listed(dag_runs, "other")) == most[state]
