"""What Airflow tells us as it happens: a DAG run begins and gets its name, a failed task says why.

Airflow calls these in the scheduler and where a task runs; what they raise is logged and changes
nothing. Light for that reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from tidebench.naming import name_of

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun as AirflowRun

OURS = ("experiment", "experiment_batch", "sweep", "remove_runs")
REASON = "reason"
"""The XCom that says why a task failed. Airflow deletes it when the task is tried again."""
MOST_LETTERS = 2000


@hookimpl
def on_dag_run_running(dag_run: AirflowRun, msg: str) -> None:
    """Put the name of a DAG run into its note, before what somebody has written there."""
    if dag_run.dag_id not in OURS:
        return
    defaults = dag_run.dag.params.dump() if dag_run.dag is not None else {}
    name = name_of(dag_run.dag_id, {**defaults, **(dag_run.conf or {})})
    note = dag_run.note or ""
    if name and not note.startswith(name):
        dag_run.note = f"{name}\n\n{note}".strip()[:1000]


@hookimpl
def on_task_instance_failed(previous_state: Any, task_instance: Any, error: Any) -> None:
    """Keep why a task failed: Airflow has it in the log only. In other processes nothing failed."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    if isinstance(task_instance, RuntimeTaskInstance) and task_instance.dag_id in OURS and error:
        said = str(error).strip() or type(error).__name__
        task_instance.xcom_push(REASON, said[:MOST_LETTERS])
