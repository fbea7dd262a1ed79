"""Commands and environment of Airflow's services on this machine."""

from __future__ import annotations

import os

SERVICES = {
    "api-server": (),
    "dag-processor": (),
    "scheduler": ("--skip-serve-logs",),
    "triggerer": ("--skip-serve-logs",),
}
"""Arguments by service, in the order of their start."""


PATIENT = {"timeout": 60.0}
"""Seconds that SQLite waits for a lock. With its default of five, services on a busy machine end
with "database is locked"."""


def service_settings(port: int) -> dict[str, str]:
    """Environment of every service; the API listens on this machine only.

    LocalExecutor runs tasks beside the scheduler, which Airflow 3 also does on SQLite.
    """
    url = f"http://127.0.0.1:{port}"
    settings = {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "3",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        # Time after which tasks of a dead scheduler or worker start again. In the default of five
        # minutes a run in real time would have no controller.
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
        # With the default of half a minute a scheduler on a busy machine considers itself dead
        # and starts all its tasks again.
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "120",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "120",
        # So that tasks survive a restart of the API server, and slow answers.
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "15",
        "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "10",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    }
    if os.environ.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "sqlite").startswith("sqlite"):
        for engine in ("", "_ASYNC"):
            name = f"AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS{engine}"
            settings[name] = "infra.airflow.settings.PATIENT"
    return settings
