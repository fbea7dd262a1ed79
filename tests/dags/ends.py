"""How a task ends, as Airflow is told."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import pytest

Told = AbstractContextManager[pytest.ExceptionInfo[BaseException], bool]


def execute(
    task: Any,
    *,
    run_id: str = "one",
    user: str | None = "someone",
    states: Mapping[str, str | None] | None = None,
    paused: bool = False,
    xcoms: dict[str, Any] | None = None,
    **context: Any,
) -> Any:
    """What it returns in a DAG run of this id that somebody began, with tasks in these states.

    DAGs that it looks up are ``paused`` or not; ``xcoms`` gets what it pushes beside its value.
    """
    whose = {"dag_id": "experiment", "run_id": run_id}
    pushed = {} if xcoms is None else xcoms
    ti = SimpleNamespace(
        **whose,
        task_id=task.task_id,
        get_dag=lambda dag_id: SimpleNamespace(is_paused=paused),
        get_task_states=lambda **_: {run_id: states or {}},
        xcom_push=lambda key, value: pushed.update({key: value}),
    )
    dag_run = SimpleNamespace(**whose, triggering_user_name=user)
    usual = {"run_id": run_id, "ti": ti, "dag_run": dag_run, "params": {}}
    return task.execute(usual | context)


def fails_for_good(match: str | None = None) -> Told:
    """It is not tried again."""
    from airflow.sdk.exceptions import AirflowFailException

    return pytest.raises(AirflowFailException, match=match)


def is_skipped(match: str) -> Told:
    """With what comes after it."""
    from airflow.sdk.exceptions import AirflowSkipException

    return pytest.raises(AirflowSkipException, match=match)
