"""How far a DAG run has come, and how long it will take: from its tasks, without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

SAID: Mapping[str, str] = {
    "resolve_spec": "looks up what was asked for",
    "resolve_matrix": "looks up what was asked for",
    "resolve_points": "looks up what was asked for",
    "wait_for_turn": "waits for its turn",
    "provision_testbed": "provisions the testbed",
    "deploy_images": "deploys the operators",
    "replay_arrivals": "begins the arrivals",
    "measure_points": "measures all points",
    "build_tables": "builds the tables",
    "check_tables": "checks the tables",
    "publish_report": "publishes the report",
}
"""What a DAG run is at while this task is. Tasks that are not here are not worth a word."""
PARTS: Mapping[str, str] = {
    "control_window": "window", "measure_cell": "cell", "cell_run.wait_for_run": "cell",
}  # fmt: skip
"""Tasks that are mapped over what a DAG run is made of, and what one of these is called."""
TAIL = ("build_tables", "check_tables", "publish_report")
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
        """As a person says it: `window 2 of 12` is the one that is under way."""
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
    ended = [one for one in parts if one.state == "success"]
    done, total = sum(one.count for one in ended), max((p.highest + 1 for p in parts), default=0)
    stage = _stage(tasks)
    to_go_s = _parts_to_go_s(parts, done, total, now, part_s) if total else None
    left = [task for task in TAIL if not _is_over(tasks, task)]
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
    """Of the tasks that are mapped, that which is not skipped as the way that was not chosen."""
    known = {task: [one for one in tasks if one.task_id == task] for task in PARTS}
    chosen = [own for own in known.values() if own and any(one.state != "skipped" for one in own)]
    begun = [own for own in chosen if any(one.began for one in own)]
    return next(iter(begun or chosen), [])


def _parts_to_go_s(
    parts: Sequence[TasksInState],
    done: int,
    total: int,
    now: datetime,
    part_s: float | None,
) -> float | None:
    """As long as the parts so far took on average, less what the present one has taken."""
    begun = min((one.began for one in parts if one.began), default=None)
    last = max((one.ended for one in parts if one.ended and one.state == "success"), default=begun)
    if done == total:
        return 0.0
    if begun is None or last is None:
        return None if part_s is None else total * part_s
    each_s = (last - begun).total_seconds() / done if done else part_s
    if each_s is None:
        return None
    return max((total - done) * each_s - (now - last).total_seconds(), 0.0)


def _stage(tasks: Sequence[TasksInState]) -> str:
    """What is said of the task that is at work, if it is not one of the parts."""
    at_work = {one.task_id for one in tasks if one.state in AT_WORK}
    if at_work & PARTS.keys():
        return ""
    return next((said for task, said in SAID.items() if task in at_work), "")


def _is_over(tasks: Sequence[TasksInState], task: str) -> bool:
    own = [one for one in tasks if one.task_id == task]
    return not own or all(one.state in ("success", "skipped") for one in own)
