"""What Airflow's services on one machine are told."""

from __future__ import annotations

import pytest

from infra.airflow import settings

ARGUMENTS = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS"
DATABASE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"


def test_sqlite_waits_for_others_and_another_database_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(DATABASE, raising=False)
    ours = settings.service_settings(8080)
    for name in (ARGUMENTS, f"{ARGUMENTS}_ASYNC"):
        module, _, attribute = ours[name].rpartition(".")
        assert module == settings.__name__
        assert getattr(settings, attribute)["timeout"] >= 30
    monkeypatch.setenv(DATABASE, "postgresql+psycopg://airflow@127.0.0.1/airflow")
    assert not any(name.startswith(ARGUMENTS) for name in settings.service_settings(8080))


def test_a_busy_service_is_given_longer_than_it_is_late() -> None:
    ours = settings.service_settings(8080)
    dead_after_s = int(ours["AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD"])
    assert dead_after_s > settings.PATIENT["timeout"], "a scheduler that waits is not dead"
    assert int(ours["AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT"]) >= settings.PATIENT["timeout"]
