"""What the listener writes into a DAG run of Airflow's own."""

from __future__ import annotations

from types import SimpleNamespace

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
    from tidebench.page.under_way import _params

    assert name_of(dag_id, _params(SimpleNamespace(dag_id=dag_id, conf=None))) == name
