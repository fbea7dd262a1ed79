"""A job of two operators as readings, times by a clock that tests set, and a service that acts."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from include.service.act import Actor, Mandate, Wish
from include.service.clock import Timestamp
from include.service.history import ChangeHistory, Entry
from include.service.journal import ChangeJournal, sentence
from include.service.limits import ChangeLimits
from include.service.reading import JobReading, OperatorReading
from include.service.shadow import Advised

NOON_S = 1_764_072_000.0  # Tuesday, 25 November 2025, 12:00 UTC
LIMITS: dict[str, Any] = {
    "default": {"least": 1, "most": 8, "most_at_once": 4},
    "changed_instances_per_hour": 10,
    "between_changes_s": 60,
    "up_within_s": 100,
    "wait_after_failure_s": 200,
    "longest_wait_s": 500,
    "respect_others_s": 1000,
}


def limits_of(**given: Any) -> ChangeLimits:
    return ChangeLimits.model_validate({**LIMITS, **given})


def moment(after_s: float = 0.0, *, wall_s: float | None = None, boot: str = "b1") -> Timestamp:
    return Timestamp(NOON_S + (after_s if wall_s is None else wall_s), boot, 5000 + after_s)


def operator(name: str, runs: int, *, asked: int | None = None, least: int = 1) -> OperatorReading:
    return OperatorReading(
        operator=name,
        vertex=f"v-{name}",
        parallelism=runs,
        asked_least=least,
        asked_most=runs if asked is None else asked,
        max_parallelism=128,
    )


def job(*operators: OperatorReading, at: Timestamp | None = None, **given: Any) -> JobReading:
    at = at or moment()
    return JobReading(
        **{
            "at_s": at.at_s,
            "job": "j1",
            "name": "shop",
            "state": "RUNNING",
            "started_s": NOON_S - 900,
            "operators": operators or (operator("parse", 2), operator("store", 3)),
            "edges": (("parse", "store"),),
            "task_managers": (),
            "checkpoint_running": False,
            "last_checkpoint_s": None,
            "restarts": 0,
            "elastic": True,
            **given,
        }
    )


def read_before(bounds: dict[str, int] | None = None, *entries: Entry) -> ChangeHistory:
    """The history of a service that read the job some time ago."""
    about = {"job": "j1", "bounds": bounds or {"parse": 2, "store": 3}}
    return reduce(
        ChangeHistory.after, (Entry(moment(-5000), "job", about), *entries), ChangeHistory()
    )


def asks(at: Timestamp, id_: str = "c1", *, instances: int = 2, **counts: int) -> Entry:
    about = {"id": id_, "asks": counts, "before": dict.fromkeys(counts, 2), "instances": instances}
    return Entry(at, "asks", about)


def ended(at: Timestamp, kind: str, id_: str = "c1", **about: Any) -> Entry:
    return Entry(at, kind, {"id": id_, **about})


def mandate(state: Path, **given: Any) -> Mandate:
    """That of tide over the job "orders"."""
    usual: dict[str, Any] = {"job_name": "orders", "controller": "tide", "limits": limits_of()}
    return Mandate(**{**usual, "really": True, "state": state, **given})


def advised(operator: str, wanted: int, **given: Any) -> Advised:
    """What tide would have at 85 s in place of two instances."""
    usual: dict[str, Any] = {
        "time_s": 85.0, "controller": "tide", "instances": 2, "reason": "backlog",
        "because": "it is late", "holds_until_s": 100.0, "in_per_s": None, "busy_share": None,
        "waiting_records": None, "takes_ms": None, "hosts_wanted": 1, "failed": False,
    }  # fmt: skip
    return Advised(operator=operator, wanted=wanted, **(usual | given))


class Acting:
    """One actor, which wants ``counts``; ten seconds pass before a step."""

    def __init__(self, flink, connect, state, *, really=True, **limits):
        self.flink, self.state, self.counts = flink, state, {"map": 3}
        given = {"between_changes_s": 0, "respect_others_s": 3600, "wait_after_failure_s": 3600}
        self.why, self.client, self.ended = "the queue grows", connect(), False
        self.why_not, self.ahead_s = "", 0.0
        may = mandate(state, really=really, limits=limits_of(**{**given, **limits}))
        self.actor = Actor(may, self.client, ends=lambda: self.ended, now=self.now)
        self.actor.read_journal()

    def now(self):
        """By a clock that is ``ahead_s``."""
        return Timestamp.now().before(-self.ahead_s)

    def step(self, *, meanwhile=lambda: None, **changed):
        """``meanwhile`` happens between the reading and the step."""
        self.flink.world.advance(10)
        wish = Wish(self.counts, {"map": self.why}, self.why_not)
        reading = replace(self.client.reading("orders"), **changed)
        meanwhile()
        return self.actor.step(reading, self.now(), wish)

    @property
    def kinds(self):
        return [entry.kind for entry in ChangeJournal(self.state).read()]

    @property
    def told(self):
        return [sentence(entry) for entry in ChangeJournal(self.state).read()]


def requests(flink):
    return [path for method, path in flink.asked if method == "PUT"]
