"""A job in memory that others share and that fails in every way, and the rules it holds us to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from include.service.clock import Timestamp
from include.service.history import NOT_SENT, NOT_UP
from include.service.limits import ChangeLimits
from include.service.reading import JobReading
from include.service.rest import JobLook
from include.testbeds.flink.rest import NoAnswerError
from tests.service import acting_world
from tests.service.acting_world import NOON_S


class Killed(BaseException):
    """kill -9: nothing that the service would do afterwards is done."""


@dataclass
class FailingFlink:
    """Keeps requirements as Flink does. Breaking a limit of the service is an AssertionError."""

    limits: ChangeLimits
    journal: Path
    bounds: dict[str, list[int]] = field(
        default_factory=lambda: {"parse": [1, 2], "store": [1, 3], "sink": [1, 200]}
    )
    slots: int = 8
    job: str = "j1"
    up_s: float = 10_000.0
    wall_s: float = NOON_S
    boot: str = "b1"
    booted_s: float = 0.0
    restarts_until_s: float = 0.0
    checkpoint: bool = False
    missing: tuple[str, ...] = ()
    may_ask: bool = True
    """Neither paused nor a dry run."""
    hangs: dict[str, str] = field(default_factory=dict)
    """By method how its next request fails: before, after, late."""
    between: Callable[[], None] | None = None
    """What others do between a reading and a request."""
    die_in: int = -1
    """Points at which a kill may come until it does; -1: never."""
    late: list[tuple[float, str, dict[str, int]]] = field(default_factory=list)
    put: list[tuple[float, int]] = field(default_factory=list)
    """When a change was asked for and by how many instances, as this side counts."""
    ids: set[str] = field(default_factory=set)
    asked_by_others: set[tuple[str, int]] = field(default_factory=set)
    seen: dict[str, int] = field(default_factory=dict)
    others_s: float = -1e9
    read_s: float = 0.0
    last_asks: dict[str, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    """Bounds of the operators of the last change that was carried out, before it."""
    crashes: bool = False
    """Whether the next change takes the job down, until its bounds change again."""
    fails_later: bool = False
    """Whether it goes down once a change counts as one that did not come up."""
    down_with: dict[str, int] | None = None
    came_up: bool = False
    """Whether all that was asked for last ran in a reading; slots may be lost after it."""
    was_running: bool = True
    """Whether the last reading has found the job running."""
    failures: int = 0
    """Changes that did not come up, by the journal, and whether the job ran at the last of them."""
    failed_running: bool = False

    def __post_init__(self) -> None:
        self.runs = {name: min(most, self.slots) for name, (_, most) in self.bounds.items()}
        self.asked_by_others = {(name, most) for name, (_, most) in self.bounds.items()}

    # ------------------------------------------------------------------------------- world

    def now(self) -> Timestamp:
        return Timestamp(self.wall_s, self.boot, self.up_s - self.booted_s)

    def passes(self, seconds: float) -> None:
        for due_s, job, asks in sorted(self.late, key=lambda each: each[0]):
            if due_s <= self.up_s + seconds:
                self._take(job, asks)
        self.late = [each for each in self.late if each[0] > self.up_s + seconds]
        self.up_s += seconds
        self.wall_s += seconds
        if self._state() == "RUNNING":
            self.runs = {name: min(most, self.slots) for name, (_, most) in self.bounds.items()}

    def point(self) -> None:
        """A kill may come here."""
        if self.die_in == 0:
            self.die_in = -1
            raise Killed
        self.die_in = max(-1, self.die_in - 1)

    def others_ask(self, name: str, most: int) -> None:
        """To a number that was never asked for, so that nobody can take it for another change.

        Nor one that was only announced: the service may have been killed before its request or
        after it, and takes the number for its own.
        """
        while (name, most) in self.asked_by_others | self._announced():
            most += 1
        self.bounds[name][1] = most
        self.asked_by_others.add((name, most))
        self._restart()

    def fails_over(self) -> None:
        """One task, and so the job."""
        self._restart()

    def begins_checkpoint(self) -> None:
        self.checkpoint = True

    def deploy_again(self, job: str) -> None:
        self.job = job
        self.bounds = {"parse": [1, 2], "store": [1, 3], "sink": [1, 200]}
        self.others_s = -1e9  # what was asked of the job before is gone
        self.last_asks, self.came_up = {}, True
        self._restart()

    def _restart(self) -> None:
        self.restarts_until_s = self.up_s + 5

    def _take(self, job: str, asks: dict[str, int]) -> None:
        if job == self.job:
            self.before = {name: self.bounds[name][1] for name in asks}
            for name, most in asks.items():
                self.bounds[name][1] = most
                self.seen[name] = most
            if self.crashes:
                self.crashes, self.down_with = False, self._most()
            self._restart()

    # ------------------------------------------------------------------------------ service

    def reading(self, name: str) -> JobReading:
        self.point()
        if self._note_failures() and self.fails_later and not self.came_up:
            self.fails_later, self.down_with = False, self._most()
        self.read_s, self.was_running = self.up_s, self._state() == "RUNNING"
        slow = self.hangs.get("reading") in ("late", "slow")
        if not slow:
            self._fails("reading")
        now = self._most()
        known = any(line["kind"] == "job" and line["job"] == self.job for line in self._lines())
        if known and now != self.seen:
            self.others_s = self.up_s
        self.seen = now
        taken = {each: now[each] for each in self.last_asks} == self.last_asks
        running = {each: self.runs[each] for each in self.last_asks}
        if self._state() == "RUNNING" and taken and running == self.last_asks:
            self.came_up = True
        reading = acting_world.job(
            *(
                acting_world.operator(each, self.runs[each], asked=most, least=least)
                for each, (least, most) in self.bounds.items()
            ),
            at_s=self.wall_s,
            job=self.job,
            name=name,
            state=self._state(),
            edges=(),
            checkpoint_running=self.checkpoint,
            missing=self.missing,
        )
        if slow:
            del self.hangs["reading"]
            self.passes(70)
        if self.between:
            self.between()
            self.between = None
        return reading

    def look(self, job: str) -> JobLook:
        self.point()
        self._fails("look")
        if job != self.job:
            raise NoAnswerError("HTTP 404")
        bounds = {f"v-{each}": (least, most) for each, (least, most) in self.bounds.items()}
        return JobLook(self._state(), NOON_S - 900, self.checkpoint, bounds, "shop")

    def _state(self) -> str:
        up = self.up_s >= self.restarts_until_s and self.down_with != self._most()
        return "RUNNING" if up else "RESTARTING"

    def _most(self) -> dict[str, int]:
        return {name: most for name, (_, most) in self.bounds.items()}

    def ask_for(self, job: str, bounds: dict[str, tuple[int, int]]) -> None:
        self.point()
        there = {f"v-{each}": (least, most) for each, (least, most) in self.bounds.items()}
        asks = {}
        for vertex, (least, most) in bounds.items():
            assert least == there[vertex][0], "a lower bound is not ours"
            if most != there[vertex][1]:
                asks[vertex.removeprefix("v-")] = most
        assert bounds.keys() == there.keys(), "Flink wants every vertex"
        self._judge(asks)
        how = self.hangs.pop("ask_for", "")
        if how == "before" or job != self.job:
            raise NoAnswerError("HTTP 500")
        if how == "late":
            self.late.append((self.up_s + 119, job, asks))
            raise NoAnswerError("timed out")
        self._take(job, asks)
        self.point()
        if how == "after":
            raise NoAnswerError("timed out")

    def _fails(self, method: str) -> None:
        if self.hangs.pop(method, ""):
            self.passes(5)
            raise NoAnswerError("timed out")

    def _judge(self, asks: dict[str, int]) -> None:
        """What no change may do, counted from this side alone."""
        assert self.may_ask, "nothing may change now"
        assert self.up_s - self.read_s <= self.limits.reading_age_s, "read too long ago"
        open_here = [job for _, job, _ in self.late if job == self.job]
        assert not open_here, "the last request may still be carried out"
        assert not self._comes_up(), "the last change is not up yet"
        back = self.down_with == self._most()
        instances = self._way_back(asks) if back else self._change(asks)
        self.put.append((self.up_s, instances))
        self.last_asks, self.came_up = asks, False
        intents = [line for line in self._lines() if line["kind"] == "asks"]
        assert intents[-1]["asks"] == asks, "the journal does not say so beforehand"
        assert intents[-1]["id"] not in self.ids, "asked for twice"
        self.ids.add(intents[-1]["id"])

    def _way_back(self, asks: dict[str, int]) -> int:
        """Of a job that is down since the last change: by how many instances it changes."""
        assert asks == self.before, "not what was there before"
        assert not self.came_up, "the last change ran"
        self._note_failures()
        assert not self.failed_running, "the job ran, and failed later"
        assert self.others_s < self.put[-1][0], "others changed it since"
        return sum(abs(self.bounds[name][1] - most) for name, most in asks.items())

    def _note_failures(self) -> bool:
        """What the journal says was not up was so by the last reading; whether it says it anew."""
        failures = sum(line["kind"] == NOT_UP for line in self._lines())
        if failures <= self.failures:
            return False
        self.failures, self.failed_running = failures, self.was_running
        return True

    def _change(self, asks: dict[str, int]) -> int:
        """Of a job that runs, within all limits."""
        assert self.up_s >= self.restarts_until_s, "a restart is under way"
        assert not self.checkpoint, "a checkpoint is under way"
        assert not self.missing, "readings were missing"
        assert self.limits.quiet_until(self.wall_s) is None, "quiet hours"
        assert self.up_s - self.others_s >= self.limits.respect_others_s, "others changed it"
        instances = 0
        for name, most in asks.items():
            least, before = self.bounds[name]
            limit = self.limits.of(name)
            assert limit is not None, f"{name} has no limits"
            assert max(least, limit.least) <= most <= limit.most
            distance = max(
                abs(most - self.runs[name]), abs(most - before) if before <= limit.most else 0
            )
            assert distance <= limit.most_at_once
            instances += distance
        recent = sum(each for at_s, each in self.put if self.up_s - at_s < 3600)
        within = recent + instances <= self.limits.changed_instances_per_hour
        assert within or not instances, "an hour's limit"  # which only a way back goes beyond
        if self.put:
            assert self.up_s - self.put[-1][0] >= self.limits.between_changes_s, "too soon"
        return instances

    def _comes_up(self) -> bool:
        """Whether the last change was taken, is as it was asked for, and never ran so far."""
        if not self.put or self.up_s - self.put[-1][0] >= self.limits.up_within_s:
            return False
        asked = {name: self.bounds[name][1] for name in self.last_asks}
        return asked == self.last_asks and not self.came_up

    def _announced(self) -> set[tuple[str, int]]:
        """All that the journal says is asked for, and does not say was not sent."""
        lines = list(self._lines())
        unsent = {line["id"] for line in lines if line["kind"] == NOT_SENT}
        intents = (line for line in lines if line["kind"] == "asks" and line["id"] not in unsent)
        return {each for line in intents for each in line["asks"].items()}

    def _lines(self):
        text = self.journal.read_text() if self.journal.exists() else ""
        for line in text.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue
