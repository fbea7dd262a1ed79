"""Airflow connections with a default, so that a fresh machine needs none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

if TYPE_CHECKING:
    from pathlib import Path


def find(conn_id: str) -> Connection | None:
    """The connection, or None when nobody defined it."""
    try:
        connection: Connection = Connection.get(conn_id)
    except AirflowNotFoundException:
        return None
    return connection


def spark_runs_here(conn_id: str) -> bool:
    """Whether Spark runs in the task's own process group, not on a cluster.

    An undefined connection is defined here for this process, as all cores of this machine;
    the Spark provider itself would fall back to YARN.
    """
    connection = find(conn_id)
    if connection is None:
        local = '{"conn_type": "spark", "host": "local[*]"}'
        os.environ[f"AIRFLOW_CONN_{conn_id.upper()}"] = local
    return connection is None or (connection.host or "").startswith("local")


def use_cloud() -> None:
    """Point this process at the cloud of `tidebench_openstack`; undefined: clouds.yaml, OS_*.

    Host is the whole authentication URL, login and password those of the user. Everything else is
    in the extra, named as in clouds.yaml (``project_name``, ``user_domain_name``, ``region_name``
    ...). A connection without a host names a cloud of clouds.yaml there: ``{"cloud": "mine"}``.
    """
    connection = find("tidebench_openstack")
    if connection is None:
        return
    settings = {name: str(value) for name, value in connection.extra_dejson.items()}
    if connection.host:
        os.environ.pop("OS_CLOUD", None)
        settings |= {
            "auth_url": connection.host,
            "username": connection.login or "",
            "password": connection.password or "",
        }
    os.environ.update({f"OS_{name.upper()}": value for name, value in settings.items()})


def results_database_url(root: Path) -> str:
    """SQLAlchemy URL of the connection `tidebench_results`: SQLite below ``root`` by default.

    Raises PublishError for a connection of SQLite without a file.
    """
    from sqlalchemy.engine import URL

    from include.model.errors import PublishError

    connection = find("tidebench_results")
    if connection is None:
        return f"sqlite:///{root / 'results.db'}"
    if connection.conn_type == "sqlite":
        if not (file := connection.host or connection.schema):
            raise PublishError(
                "the connection tidebench_results is of SQLite and names no file; give its path "
                "as the host, or remove the connection for results.db in the data root"
            )
        return f"sqlite:///{file}"
    url = URL.create(
        "postgresql+psycopg",
        username=connection.login,
        password=connection.password,
        host=connection.host,
        port=connection.port,
        database=connection.schema,
        query={key: str(value) for key, value in connection.extra_dejson.items()},
    )
    return url.render_as_string(hide_password=False)
