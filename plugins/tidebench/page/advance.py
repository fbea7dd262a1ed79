"""Progress of a DAG run and how long it will take, from its tasks; without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

DOING: Mapping[str, str] = {
    "resolve_spec": "looks up what was asked for",
    "resolve_matrix": "looks up what was asked for",
    "resolve_points": "looks up what was asked for",
    "resolve_advice": "reads the recording",
    "resolve_day": "reads the recording",
    "choose_studies": "looks up what was asked for",
    "resolve_runs": "looks up what was asked for",
    "wait_for_turn": "waits for its turn",
    "provision_testbed": "provisions the testbed",
    "deploy_images": "deploys the operators",
    "replay_arrivals": "begins the arrivals",
    "measure_points": "measures all points",
    "remove_runs": "removes the runs",
    "build_tables": "builds the tables",
    "check_tables": "checks the tables",
    "publish_report": "publishes the report",
    "build_ranking": "ranks the policies",
    "publish_advice": "publishes the advice",
    "publish_day": "publishes the day",
}
"""What a DAG run does while a task is at work. Other tasks are too short to be named."""
PARTS: Mapping[str, str] = {
    "control_window": "window", "measure_cell": "cell", "cell_run.wait_for_run": "cell",
    "replay_policy": "policy",
}  # fmt: skip
"""Tasks that are mapped over the parts of a DAG run, and what a part is called."""
TAIL = (
    "build_tables", "check_tables", "publish_report", "build_ranking", "publish_advice",
    "publish_day",
)  # fmt: skip
"""Tasks behind the parts, in their order."""
AT_WORK = ("running", "deferred", "queued", "scheduled", "up_for_retry", "up_for_reschedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksInState:
    """Copies of one task of a DAG run that are in one state; of the times those that are known."""

    task_id: str
    state: str | None
    count: int
    highest: int = -1
    """The highest map index; -1 of a task that is not mapped, or not yet."""
    began: datetime | None = None
    """When the first of them began."""
    ended: datetime | None = None
    """When the last of them ended."""
    fresh: bool = True
    """Whether they began since the DAG run was triggered or cleared last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """How far a DAG run has come. ``total`` is 0 as long as nobody knows it."""

    part: str = ""
    done: int = 0
    total: int = 0
    stage: str = ""
    to_go_s: float | None = None
    at_least: bool = False
    """Whether ``to_go_s`` lacks something that was never seen."""

    @property
    def text(self) -> str:
        """In words: `window 2 of 12` is under way."""
        if not self.total or self.stage:
            return self.stage
        return f"{self.part} {min(self.done + 1, self.total)} of {self.total}"

    @property
    def to_go(self) -> str:
        """Rounded, because it is an estimate; empty where there is none."""
        if self.to_go_s is None:
            return ""
        about = "at least" if self.at_least else "about"
        minutes = self.to_go_s / 60
        if minutes < 1:
            return f"{about} a minute" if self.at_least else "less than a minute"
        if minutes < 90:
            return f"{about} {minutes:.0f} min"
        hours = minutes / 60
        return f"{about} {hours:.1f} h" if hours < 48 else f"{about} {hours / 24:.0f} days"


def advance_of(
    tasks: Sequence[TasksInState],
    now: datetime,
    tail_s: Mapping[str, float],
    part_s: float | None = None,
) -> Advance:
    """How far the DAG run with these tasks has come.

    ``tail_s`` is how long tasks after the parts took lately, by their id. ``part_s`` is how long a
    part takes at least, where that is known beforehand: in real time.
    """
    parts = _parts(tasks)
    ended = [part for part in parts if part.state == "success"]
    done, total = sum(part.count for part in ended), max((p.highest + 1 for p in parts), default=0)
    left = [task for task in TAIL if not _is_over(tasks, task)]
    stage = _stage(tasks) or (DOING[left[0]] if total and done == total and left else "")
    to_go_s = _parts_to_go_s(parts, done, total, now, part_s) if total else None
    if to_go_s is not None:
        to_go_s += sum(tail_s.get(task, 0.0) for task in left)
    return Advance(
        part=PARTS[parts[0].task_id] if parts else "",
        done=done,
        total=total,
        stage=stage,
        to_go_s=to_go_s,
        at_least=any(task not in tail_s for task in left),
    )


def _parts(tasks: Sequence[TasksInState]) -> list[TasksInState]:
    """Copies of the mapped task that measures: another way to measure is skipped."""
    by_task = {task: [copies for copies in tasks if copies.task_id == task] for task in PARTS}
    chosen = [
        states
        for states in by_task.values()
        if states and any(copies.state != "skipped" for copies in states)
    ]
    begun = [states for states in chosen if any(copies.began for copies in states)]
    return next(iter(begun or chosen), [])


def _parts_to_go_s(
    parts: Sequence[TasksInState],
    done: int,
    total: int,
    now: datetime,
    part_s: float | None,
) -> float | None:
    """As long as the fresh parts so far took on average, less what the present one has taken.

    A part from before the last clear says when it ended then, and not how long one takes now.
    """
    if done == total:
        return 0.0
    fresh = [part for part in parts if part.fresh and part.state in ("success", *AT_WORK)]
    ended = [part for part in fresh if part.state == "success"]
    begun = min((part.began for part in fresh if part.began), default=None)
    last = max((part.ended for part in ended if part.ended), default=begun)
    if begun is None or last is None:
        return None if part_s is None else (total - done) * part_s
    done_now = sum(part.count for part in ended)
    each_s = (last - begun).total_seconds() / done_now if done_now else part_s
    if each_s is None:
        return None
    return max((total - done) * each_s - (now - last).total_seconds(), 0.0)


def _stage(tasks: Sequence[TasksInState]) -> str:
    """What the task at work does, unless it is one of the parts."""
    at_work = {copies.task_id for copies in tasks if copies.state in AT_WORK}
    if at_work & PARTS.keys():
        return ""
    return next((words for task, words in DOING.items() if task in at_work), "")


def _is_over(tasks: Sequence[TasksInState], task: str) -> bool:
    states = [copies for copies in tasks if copies.task_id == task]
    return not states or all(copies.state in ("success", "skipped") for copies in states)
