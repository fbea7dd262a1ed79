"""What happened to a job between two polls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from include.service.reading import JobReading


class JobEvent(NamedTuple):
    """``at_s`` in epoch seconds, one word, and a sentence."""

    at_s: float
    kind: str
    detail: str


def changes_between(before: JobReading, now: JobReading) -> Iterator[tuple[str, str]]:
    """Every change that somebody who reads the recording has to know of: a word, a sentence."""
    if now.state != before.state:
        yield "state", f"{before.state} -> {now.state}"
    if now.job != before.job:
        yield "redeployed", f"the job of this name is {now.job} now, and was {before.job}"
        return
    scaled = [
        f"{name} {before.instances[name]} -> {count}"
        for name, count in now.instances.items()
        if name in before.instances and before.instances[name] != count
    ]
    if scaled:
        yield "rescaled", ", ".join(scaled)
    more = (now.restarts or 0) - (before.restarts or 0)
    started = before.running and now.running and now.started_s != before.started_s
    if not scaled and (more > 0 or started):
        yield "restarted", f"{more} times" if more > 1 else "the job was started again"
    asked = [
        f"{op.operator} {was.asked_least}-{was.asked_most} -> {op.asked_least}-{op.asked_most}"
        for op in now.operators
        for was in before.operators
        if op.operator == was.operator
        and (op.asked_least, op.asked_most) != (was.asked_least, was.asked_most)
    ]
    if asked:
        yield "asked", ", ".join(asked)
    managers, were = ({manager.id for manager in of.task_managers} for of in (now, before))
    if not _unknown(before) and not _unknown(now):
        if gone := sorted(were - managers):
            yield "task_managers_gone", ", ".join(gone)
        if new := sorted(managers - were):
            yield "task_managers_new", ", ".join(new)


def _unknown(reading: JobReading) -> bool:
    return any(line.startswith("TaskManagers:") for line in reading.missing)
