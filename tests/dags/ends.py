"""How a task ends, as Airflow is told."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import pytest

Told = AbstractContextManager[pytest.ExceptionInfo[BaseException], bool]


def returns(task: Any, **context: Any) -> tuple[Any, dict[str, Any]]:
    """What it returns, and the XComs that it pushes beside that."""
    xcoms: dict[str, Any] = {}
    ti = SimpleNamespace(xcom_push=lambda key, value: xcoms.update({key: value}))
    return task.execute({"ti": ti, **context}), xcoms


def fails_for_good(match: str | None = None) -> Told:
    """It is not tried again."""
    from airflow.sdk.exceptions import AirflowFailException

    return pytest.raises(AirflowFailException, match=match)


def is_skipped(match: str) -> Told:
    """With what comes after it."""
    from airflow.sdk.exceptions import AirflowSkipException

    return pytest.raises(AirflowSkipException, match=match)
