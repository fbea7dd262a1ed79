"""DAG runs that measure, advise or remove: queued, running, or failed in the last days.

They are read from Airflow's own database, as its own pages do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from sqlalchemy import func, select, tuple_

from include.advise.form import shadow_params
from include.experiment.form import batch_params, experiment_params
from include.testbeds import TESTBEDS
from tidebench import studies
from tidebench.listener import MARKED_FAILED, OURS, REASON
from tidebench.naming import name_of
from tidebench.page.advance import TAIL, Advance, TasksInState, advance_of
from tidebench.page.changes import may

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from sqlalchemy.orm import Session

FAILED_FOR = timedelta(days=7)
"""How long a failed DAG run is listed; Airflow's own list has all of them."""
MOST_UNDER_WAY, MOST_FAILED = 50, 5
RECENTLY = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """One DAG run, as the list shows it. ``since`` is when it began, was queued, or failed."""

    dag_id: str
    run_id: str
    experiment: str
    name: str
    state: str
    """Of the DAG run; `paused` while its DAG is, so that none of its tasks begin."""
    since: datetime | None
    by: str
    advance: Advance
    reason: str = ""
    task: str = ""
    """Where the reason is in the log: the end of an address of Airflow's."""

    @property
    def address(self) -> str:
        """Address of Airflow's page of the DAG run, below Airflow's own."""
        return f"/dags/{quote(self.dag_id)}/runs/{quote(self.run_id, safe='')}"


def under_way(session: Session, user: BaseUser, experiment: str = "") -> list[UnderWay]:
    """DAG runs that this user may read, running ones first; all, or those of one experiment."""
    now = datetime.now(UTC)
    runs = dag_runs(session, user, now, experiment)
    keys = [(run.dag_id, run.run_id) for run in runs]
    if not keys:
        return []
    tasks, reasons = _tasks(session, keys), _reasons(session, keys)
    tails = _tails(session, now)
    listed = []
    for run in runs:
        key = (run.dag_id, run.run_id)
        reason, task = reasons.get(key) or _fallback(run, tasks[key])
        listed.append(
            UnderWay(
                dag_id=run.dag_id,
                run_id=run.run_id,
                experiment=_experiment_of(run),
                name=name_of(run.dag_id, params_of(run)),
                state="paused" if run.is_paused and run.state != "failed" else run.state,
                since=run.end_date or run.start_date or run.queued_at,
                by=run.triggering_user_name or "",
                advance=advance_of(tasks[key], now, tails[run.dag_id], _part_s(params_of(run))),
                reason=reason,
                task=task,
            )
        )
    return listed


def dag_runs(session: Session, user: BaseUser, now: datetime, experiment: str = "") -> list[Any]:
    """Rows of DAG runs, the running ones first, then by time, the newest first; all, or those of
    one experiment."""
    readable = [dag for dag in OURS if may(user, "GET", dag)]
    columns = (
        DagRun.dag_id, DagRun.run_id, DagRun.state, DagRun.conf, DagRun.queued_at,
        DagRun.start_date, DagRun.end_date, DagRun.triggering_user_name, DagModel.is_paused,
    )  # fmt: skip
    readable_runs = (
        select(*columns)
        .join(DagModel, DagModel.dag_id == DagRun.dag_id)
        .where(DagRun.dag_id.in_(readable))
    )
    ended = func.coalesce(DagRun.end_date, DagRun.updated_at)  # one that never began has no end
    is_going = DagRun.state.in_(("queued", "running"))
    has_failed = (DagRun.state == "failed") & (ended >= now - FAILED_FOR)
    # Running ones first: more may be queued than are listed.
    going = readable_runs.where(is_going).order_by(DagRun.state.desc(), DagRun.id.desc())
    failed = readable_runs.where(has_failed).order_by(ended.desc())
    listed: list[Any] = []
    for runs, most in ((going, MOST_UNDER_WAY), (failed, MOST_FAILED)):
        if experiment:  # the form may have told it, by its default, which no database knows
            own = (run for run in session.execute(runs) if _experiment_of(run) == experiment)
            listed += islice(own, most)
        else:
            listed += session.execute(runs.limit(most))
    return listed


def _tasks(
    session: Session, keys: Sequence[tuple[str, str]]
) -> Mapping[tuple[str, str], list[TasksInState]]:
    """Tasks of these DAG runs, counted by state: a matrix may have a thousand copies of one."""
    ti = TaskInstance
    fresh = ti.start_date >= DagRun.start_date  # null where either has not begun
    statement = (
        select(
            ti.dag_id, ti.run_id, ti.task_id, ti.state, fresh.label("fresh"),
            func.count().label("count"), func.max(ti.map_index).label("highest"),
            func.min(ti.start_date).label("began"), func.max(ti.end_date).label("ended"),
        )
        .join(DagRun, (DagRun.dag_id == ti.dag_id) & (DagRun.run_id == ti.run_id))
        .where(tuple_(ti.dag_id, ti.run_id).in_(keys))
        .group_by(ti.dag_id, ti.run_id, ti.task_id, ti.state, fresh)
    )  # fmt: skip
    tasks = defaultdict(list)
    for row in session.execute(statement).mappings():
        values = {name: row[name] for name in TasksInState.__slots__}
        values["fresh"] = bool(row["fresh"])
        tasks[row["dag_id"], row["run_id"]].append(TasksInState(**values))
    return tasks


def _reasons(
    session: Session, keys: Sequence[tuple[str, str]]
) -> Mapping[tuple[str, str], tuple[str, str]]:
    """By DAG run, why its first failed task failed, and the address of its log.

    One that was ended by hand says so, whatever its tasks said as they were stopped.
    """
    statement = (
        select(
            XComModel.dag_id, XComModel.run_id, XComModel.task_id, XComModel.map_index,
            XComModel.value,
        )
        .where(XComModel.key == REASON, tuple_(XComModel.dag_id, XComModel.run_id).in_(keys))
        .order_by(XComModel.timestamp.desc())
    )  # fmt: skip
    reasons: dict[tuple[str, str], tuple[str, str]] = {}
    for row in session.execute(statement):
        reason = str(XComModel.deserialize_value(row))
        if reason == MARKED_FAILED:
            reasons[row.dag_id, row.run_id] = reason, ""
        elif reasons.get((row.dag_id, row.run_id), ("",))[0] != MARKED_FAILED:
            reasons[row.dag_id, row.run_id] = reason, _task(row.task_id, row.map_index)
    return reasons


def _fallback(run: Any, tasks: Sequence[TasksInState]) -> tuple[str, str]:
    """What can be said of a failure that left no reason, as when a process was killed."""
    if run.state != "failed":
        return "", ""
    failed = [task for task in tasks if task.state == "failed"]
    if not failed:
        return "The DAG run was ended by hand, or took longer than it may.", ""
    first = min(failed, key=lambda task: task.ended.timestamp() if task.ended else inf)
    task = _task(first.task_id, -1 if first.highest < 0 or first.count > 1 else first.highest)
    return f"{first.task_id} was stopped before it could say why. See its log.", task


def _task(task_id: str, map_index: int) -> str:
    copy = f"/mapped/{map_index}" if map_index >= 0 else ""
    return f"/tasks/{quote(task_id)}{copy}"


def _tails(session: Session, now: datetime) -> Mapping[str, Mapping[str, float]]:
    """By DAG and task, how many seconds the last tasks of a DAG run took lately, on average."""
    ti = TaskInstance
    statement = (
        select(ti.dag_id, ti.task_id, func.avg(ti.duration).label("took_s"))
        .where(
            ti.dag_id.in_(OURS), ti.task_id.in_(TAIL), ti.state == "success",
            ti.end_date >= now - RECENTLY,
        )
        .group_by(ti.dag_id, ti.task_id)
    )  # fmt: skip
    took_s: dict[str, dict[str, float]] = defaultdict(dict)
    for row in session.execute(statement):
        if row.took_s is not None:
            took_s[row.dag_id][row.task_id] = float(row.took_s)
    return took_s


def params_of(run: Any) -> Mapping[str, Any]:
    """What a DAG run was asked for, defaults of its form included."""
    return {**_defaults(run.dag_id), **(run.conf or {})}


@cache
def _defaults(dag_id: str) -> Mapping[str, Any]:
    forms: dict[str, Mapping[str, Any]] = {
        "experiment": experiment_params(),
        "experiment_batch": batch_params(),
        "shadow_report": shadow_params(),
        "nightly_reproducibility": studies.PARAMS,
    }
    return {name: field["default"] for name, field in forms.get(dag_id, {}).items()}


def _experiment_of(run: Any) -> str:
    """Empty where only a file says it."""
    params = params_of(run)
    return "" if params.get("spec") else str(params.get("experiment", ""))


def _part_s(params: Mapping[str, Any]) -> float | None:
    """Seconds that a window takes, where it takes as long as it says; cells have none of these."""
    testbed, btu_min = params.get("testbed"), params.get("btu_min")
    if not (isinstance(testbed, str) and isinstance(btu_min, int | float)):
        return None
    registration = TESTBEDS.get(testbed)
    return btu_min * 60 if registration is not None and registration.real_time else None
