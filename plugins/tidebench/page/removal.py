"""Removing runs from the page: it triggers the DAG `remove_runs`, which does it in its turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow.api.common.trigger_dag import trigger_dag
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.exceptions import DagNotFound
from airflow.utils.types import DagRunTriggeredByType
from fastapi import HTTPException

from tidebench.page.files import is_experiment

DAG_ID = "remove_runs"
MAY_REMOVE = requires_access_dag("POST", DagAccessEntity.RUN, param_dag_id=DAG_ID)
"""Who may trigger the DAG `remove_runs` may remove runs. Airflow's own check."""


def asked(chosen: Sequence[str]) -> Mapping[str, list[str]]:
    """The chosen runs by experiment, each given as `experiment/run`. HTTPException 404 for none."""
    runs: dict[str, list[str]] = {}
    for one in dict.fromkeys(chosen):
        experiment, _, run = one.partition("/")
        if not (is_experiment(experiment) and run):
            raise HTTPException(404, f"{one} is not a run; choose in the list.")
        runs.setdefault(experiment, []).append(run)
    if not runs:
        raise HTTPException(404, "Choose at least one run in the list, then remove again.")
    return runs


def triggered(runs: Mapping[str, Sequence[str]], user: str) -> Mapping[str, str]:
    """Trigger a DAG run per experiment; returns their ids."""
    ids = {}
    for experiment, own in runs.items():
        try:
            dag_run = trigger_dag(
                DAG_ID,
                triggered_by=DagRunTriggeredByType.UI,
                triggering_user_name=user,
                conf={"experiment": experiment, "runs": list(own)},
            )
        except DagNotFound as error:
            raise HTTPException(
                503, f"The DAG {DAG_ID} is not there (yet): it is in dags/ of Tidebench."
            ) from error
        if dag_run is not None:
            ids[experiment] = dag_run.run_id
    return ids
