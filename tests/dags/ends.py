"""How a task ends that does not succeed, as Airflow is told."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

Told = AbstractContextManager[pytest.ExceptionInfo[BaseException], bool]


def fails_for_good(match: str | None = None) -> Told:
    """It is not tried again."""
    from airflow.sdk.exceptions import AirflowFailException

    return pytest.raises(AirflowFailException, match=match)


def is_skipped(match: str) -> Told:
    """With what comes after it."""
    from airflow.sdk.exceptions import AirflowSkipException

    return pytest.raises(AirflowSkipException, match=match)
