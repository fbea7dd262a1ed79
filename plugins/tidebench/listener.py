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

OURS = (
    "experiment", "experiment_batch", "sweep", "remove_runs", "advise", "shadow_report",
    "nightly_reproducibility",
)  # fmt: skip
"""DAGs whose runs have a name, and say why they failed."""
REASON = "reason"
"""The XCom that says why a task failed. Airflow deletes it when the task is tried again."""
MARKED_FAILED = (
    "Ended by hand: the DAG run was marked failed. Clear it to go on: what is complete is kept, "
    "except for windows on a testbed in real time."
)
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
def on_dag_run_failed(dag_run: AirflowRun, msg: str) -> None:
    """Keep that a DAG run was marked failed, and see that it ends as one.

    While its teardown is due Airflow keeps it going, skips the other tasks, and decides by the last
    ones: without one that failed the DAG run ends as a success.
    """
    teardown_due = dag_run.state != "failed"
    by_hand = teardown_due or "manually" in msg  # the scheduler calls this where a task failed
    if dag_run.dag_id not in OURS or dag_run.dag is None or not by_hand:
        return
    from airflow.models.xcom import XComModel
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    assert session is not None, "whoever marks a DAG run has it in a session"
    for task in dag_run.dag.tasks:
        if task.is_teardown or task.downstream_task_ids:
            continue
        if last := dag_run.get_task_instance(task.task_id, session=session):
            if teardown_due:
                last.set_state("failed", session=session)
            XComModel.set(
                key=REASON,
                value=MARKED_FAILED,
                dag_id=dag_run.dag_id,
                run_id=dag_run.run_id,
                task_id=task.task_id,
                session=session,
            )


@hookimpl
def on_task_instance_failed(previous_state: Any, task_instance: Any, error: Any) -> None:
    """Keep why a task failed: Airflow has it in the log only. In other processes nothing failed."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    if isinstance(task_instance, RuntimeTaskInstance) and task_instance.dag_id in OURS and error:
        reason = str(error).strip() or type(error).__name__
        task_instance.xcom_push(REASON, reason[:MOST_LETTERS])
