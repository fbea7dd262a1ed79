"""Airflow's services as processes of this machine, and how they find each other."""

from __future__ import annotations

import os

SERVICES = {
    "api-server": (),
    "dag-processor": (),
    "scheduler": ("--skip-serve-logs",),
    "triggerer": ("--skip-serve-logs",),
}
"""Arguments of each, in the order in which they start."""


PATIENT = {"timeout": 60.0}
"""For how many seconds SQLite waits for others to write. After its five, on a machine that is busy,
services end with "database is locked"."""


def service_settings(port: int) -> dict[str, str]:
    """Environment of every service; its API listens on this machine only.

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
        # When tasks of a scheduler or worker that is gone begin again; by default after five
        # minutes each, in which a run in real time would go on without its controller.
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
        # After half a minute without a heartbeat, which is the default, a scheduler on a machine
        # that is busy takes itself for dead, and begins all of its own tasks again.
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "120",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "120",
        # Tasks outlive an API server that is started again, and one that is busy and answers late.
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "15",
        "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "10",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    }
    if os.environ.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "sqlite").startswith("sqlite"):
        for engine in ("", "_ASYNC"):
            name = f"AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS{engine}"
            settings[name] = "infra.airflow.settings.PATIENT"
    return settings
