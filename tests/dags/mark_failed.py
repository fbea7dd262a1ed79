"""Mark DAG runs of `experiment` failed as the UI does, and print as JSON how each ends.

Runs as a process of its own, because Airflow reads its configuration when it is imported. Reads
from stdin, per DAG run, the states that its tasks have when it is marked.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

TEARDOWN = "release_testbed"


def main(folder: str) -> None:
    """Sync the DAG files of ``folder`` and play every DAG run through."""
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
    sync_bag_to_db(DagBag(folder), "dags-folder", None)
    dag = SerializedDagModel.get_dag("experiment")
    ends = []
    for states in json.load(sys.stdin):
        with create_session() as session:
            ends.append(end_of(dag, f"run_{len(ends)}", states, session))
    sys.stdout.write("\n" + json.dumps(ends))


def end_of(dag: Any, run_id: str, states: dict[str, str | None], session: Any) -> dict[str, Any]:
    """State of the DAG run and of its tasks once its teardown, if it was due, has succeeded."""
    from airflow.api_fastapi.core_api.datamodels.dag_run import DagRunMutableStates
    from airflow.api_fastapi.core_api.services.public.dag_run import patch_dag_run_state
    from airflow.models.xcom import XComModel
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    dag_run = dag.create_dagrun(
        run_id=run_id,
        run_after=datetime.now(UTC),
        run_type=DagRunType.MANUAL,
        triggered_by=DagRunTriggeredByType.TEST,
        state=DagRunState.RUNNING,
        session=session,
    )
    tasks = {ti.task_id: ti for ti in dag_run.get_task_instances(session=session)}
    for task_id, ti in tasks.items():
        ti.state = states.get(task_id, "success")
    session.flush()
    failed = DagRunMutableStates.FAILED
    patch_dag_run_state(dag=dag, dag_run=dag_run, state=failed, session=session)
    session.flush()
    due = dag_run.state == "running"
    if due:
        tasks[TEARDOWN].set_state("success", session=session)
        dag_run.dag = dag
        dag_run.update_state(session=session, execute_callbacks=False)
    reasons = XComModel.get_many(key="reason", run_id=run_id, dag_ids="experiment")
    return {
        "teardown_due": due,
        "state": dag_run.state,
        "reasons": [XComModel.deserialize_value(row) for row in session.scalars(reasons)],
    }


if __name__ == "__main__":
    main(sys.argv[1])
