"""Connections are optional: what is not defined has a default on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from include.model.errors import PublishError

CONNECTION = "AIRFLOW_CONN_TIDEBENCH_RESULTS"


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        ("", "sqlite:///{root}/results.db"),
        (
            "postgres://reporter:p%40ss-word@db:5433/results?sslmode=require",
            "postgresql+psycopg://reporter:p%40ss-word@db:5433/results?sslmode=require",
        ),
        ('{"conn_type": "sqlite", "host": "/data/all.db"}', "sqlite:////data/all.db"),
    ],
    ids=["beside the data", "with password, port and options", "a file"],
)
def test_results_go_to_sqlite_beside_the_data_unless_a_connection_says_otherwise(
    connection: str, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tidebench.connections import results_database_url

    monkeypatch.delenv(CONNECTION, raising=False)
    if connection:
        monkeypatch.setenv(CONNECTION, connection)
    assert results_database_url(tmp_path) == url.format(root=tmp_path)


def test_a_results_connection_of_sqlite_without_a_file_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tidebench.connections import results_database_url

    monkeypatch.setenv(CONNECTION, '{"conn_type": "sqlite"}')
    with pytest.raises(PublishError, match="give its path as the host"):
        results_database_url(tmp_path)


@pytest.mark.parametrize(
    ("defined", "master"),
    [(None, "local[*]"), ('{"conn_type": "spark", "host": "local[1]"}', "local[1]"),
     ("spark://master:7077", "spark://master:7077")],
)  # fmt: skip
def test_the_spark_connection_chooses_the_master_and_may_be_missing(
    monkeypatch: pytest.MonkeyPatch, defined: str | None, master: str
) -> None:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    from tidebench.connections import spark_runs_here

    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", defined or "")
    if defined is None:
        monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    try:
        assert spark_runs_here("spark_default") == master.startswith("local")
        assert SparkSubmitHook(conn_id="spark_default")._connection["master"] == master
    finally:
        os.environ.pop("AIRFLOW_CONN_SPARK_DEFAULT", None)


def test_a_cloud_is_a_connection_or_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tidebench.connections import use_cloud

    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    use_cloud()
    assert [name for name in os.environ if name.startswith("OS_")] == []

    os.environ["OS_CLOUD"] = "another"
    os.environ["AIRFLOW_CONN_TIDEBENCH_OPENSTACK"] = (
        '{"conn_type": "generic", "host": "https://cloud:5000/v3", "login": "me", '
        '"password": "p%ss", "extra": {"project_name": "p", "region_name": "R"}}'
    )
    use_cloud()
    environment = {name: value for name, value in os.environ.items() if name.startswith("OS_")}
    assert environment == {
        "OS_AUTH_URL": "https://cloud:5000/v3",
        "OS_USERNAME": "me",
        "OS_PASSWORD": "p%ss",
        "OS_PROJECT_NAME": "p",
        "OS_REGION_NAME": "R",
    }

    os.environ["AIRFLOW_CONN_TIDEBENCH_OPENSTACK"] = (
        '{"conn_type": "generic", "extra": {"cloud": "mine"}}'
    )
    use_cloud()
    assert os.environ["OS_CLOUD"] == "mine"
