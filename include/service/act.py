"""A controller that acts on a running job: read, settle what came before, decide, ask.

One step after the other, and at most one change in a step. What a step knows of changes before
is in the journal alone, so a service that was killed goes on as if it had only paused.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from include.files.whole import write_json
from include.model.errors import SetupError, StoreError
from include.runs.measurements.locks import alone, locked
from include.service.guard import Present, Verdict, allowed_change
from include.service.history import TAKEN, Entry, folded, news
from include.service.journal import Journal
from include.service.limits import Limits
from include.service.moment import Moment, moment
from include.service.pause import why_paused
from include.service.reading import JobReading
from include.testbeds.flink.rest import NoAnswerError

LEASE = "act"
WANTED = "wanted.json"
"""What the controller wants now; `keda` serves it."""
log = logging.getLogger(__name__)


class Flink(Protocol):
    """What is asked of Flink; every method raises NoAnswerError. See ``rest.FlinkRest``."""

    def reading(self, name: str) -> JobReading: ...

    def requirements(self, job: str) -> dict[str, tuple[int, int]]: ...

    def ask_for(self, job: str, most: Mapping[str, int]) -> None: ...


@dataclass(frozen=True, slots=True)
class Wish:
    """Instances that a controller wants by operator, and why."""

    counts: Mapping[str, int] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """Who acts on which job, and within what."""

    job_name: str
    controller: str
    limits: Limits
    really: bool
    """Else a dry run: the journal says what would be asked for."""
    state: Path


class Service:
    """Acts on one job. Raises StoreError for a journal that is damaged."""

    def __init__(
        self,
        acting: Acting,
        flink: Flink,
        wanted_of: Callable[[JobReading], Wish],
        now: Callable[[], Moment] = moment,
    ) -> None:
        self._acting, self._flink, self._wanted_of, self._now = acting, flink, wanted_of, now
        self._journal = Journal(acting.state)
        self._history = folded(self._journal.read())
        self._found: Mapping[str, int] = {}
        self._noted: Any = None
        self._paused = ""
        self.ending = threading.Event()
        """Once it is set nothing is changed any more."""

    def step(self) -> Verdict:
        """One reading, and at most one change. Never fails for what Flink or a disk does."""
        try:
            return self._step()
        except NoAnswerError as error:
            log.warning("%s", error)
            return Verdict(held=(str(error),))
        except SetupError as error:  # the journal cannot be written, so nothing is done
            log.error("%s", error)
            return Verdict(held=(str(error),))

    def _step(self) -> Verdict:
        self._note_pause()
        read = self._now()
        reading = self._flink.reading(self._acting.job_name)
        for entry in news(self._history, reading, self._acting.limits, self._now()):
            self._write(entry)
        self._found = self._found or self._history.bounds
        wish = self._wanted_of(reading)
        self._keep(wish, reading)
        verdict = self._verdict(wish, reading, read)
        if verdict.asks and self._acting.really:
            if self._flink.requirements(reading.job) != _asked(reading):
                return Verdict(held=("what the job asks for changes; reading again",))
            verdict = self._verdict(wish, reading, read)  # asking took time
        self._note(verdict, wish, reading)
        if verdict.asks and self._acting.really:
            self._ask(verdict, wish, reading)
        return verdict

    def _verdict(self, wish: Wish, reading: JobReading, read: Moment) -> Verdict:
        stopped = "the service ends" if self.ending.is_set() else why_paused(self._acting.state)
        present = Present(self._now(), read, stopped)
        return allowed_change(wish.counts, reading, self._acting.limits, self._history, present)

    def _ask(self, verdict: Verdict, wish: Wish, reading: JobReading) -> None:
        change = {"id": uuid4().hex[:12], **self._about(verdict, wish, reading)}
        self._write(Entry(self._now(), "asks", change))
        vertices = {each.operator: each.vertex for each in reading.operators}
        try:
            self._flink.ask_for(
                reading.job, {vertices[name]: count for name, count in verdict.asks.items()}
            )
        except NoAnswerError as error:
            about = {"id": change["id"], "says": str(error)}
            self._write(Entry(self._now(), "no answer", about))
        else:
            self._write(Entry(self._now(), TAKEN, {"id": change["id"], "asks": verdict.asks}))

    def _about(self, verdict: Verdict, wish: Wish, reading: JobReading) -> dict[str, Any]:
        most = {each.operator: each.asked_most for each in reading.operators}
        return {
            "asks": verdict.asks,
            "before": {name: most[name] for name in verdict.asks},
            "instances": verdict.instances,
            "wanted": wish.counts,
            "why": {name: wish.why[name] for name in verdict.asks if name in wish.why},
            "cuts": verdict.cuts,
        }

    def _note(self, verdict: Verdict, wish: Wish, reading: JobReading) -> None:
        """Say once what is held or cut of what is wanted, and in a dry run what would be done."""
        most = {each.operator: each.asked_most for each in reading.operators}
        wanted = {name: n for name, n in wish.counts.items() if most.get(name) not in (None, n)}
        would = verdict.asks if not self._acting.really else {}
        noted = (verdict.held if wanted else (), dict(would), dict(verdict.cuts))
        if noted == self._noted:
            return
        if would:
            self._write(Entry(self._now(), "would", self._about(verdict, wish, reading)))
        elif noted[0] or (verdict.cuts and not verdict.asks):
            about = {"held": noted[0], "wanted": wish.counts, "cuts": verdict.cuts}
            self._write(Entry(self._now(), "held", about))
        self._noted = noted

    def _note_pause(self) -> None:
        paused = why_paused(self._acting.state)
        if paused != self._paused:
            kind = "paused" if paused else "resumed"
            self._write(Entry(self._now(), kind, {"why": paused}))
            self._paused = paused

    def _keep(self, wish: Wish, reading: JobReading) -> None:
        about = {
            "at_s": reading.at_s,
            "job": reading.name,
            "controller": self._acting.controller,
            "wanted": wish.counts,
            "runs": reading.instances,
        }
        try:
            write_json(self._acting.state / WANTED, about)
        except SetupError as error:  # costs those who look, and no change
            log.warning("%s", error)

    def _write(self, entry: Entry) -> None:
        self._journal.append(entry)
        self._history = self._history.after(entry)

    def begin(self) -> None:
        """Say in the journal that this service begins. Raises SetupError when that cannot be."""
        about = {
            "job_name": self._acting.job_name,
            "controller": self._acting.controller,
            "really": self._acting.really,
            "pid": os.getpid(),
            "limits": self._acting.limits.model_dump(exclude_defaults=True),
        }
        self._write(Entry(self._now(), "began", about))

    def end(self) -> None:
        """Say in the journal how the job is handed back: as it is, with what it asks for."""
        about = {"bounds": self._history.bounds, "found": self._found}
        self._write(Entry(self._now(), "ended", about))


def serve(service: Service, acting: Acting, every_s: float, say: Callable[[Verdict], None]) -> None:
    """Step after step until ``service.ending`` is set; then hand the job back.

    Raises StoreError when another service acts with the same state, SetupError when the journal
    cannot be written at the begin.
    """
    if LEASE in locked(acting.state):
        raise StoreError(f"another service acts with {acting.state}; end it, or name another state")
    with alone(acting.state, LEASE, wait_s=0.0):
        service.begin()
        while not service.ending.is_set():
            began_s = time.monotonic()
            say(service.step())
            service.ending.wait(max(0.0, every_s - (time.monotonic() - began_s)))
        with suppress(SetupError):  # a full disk is no reason not to end
            service.end()


def _asked(reading: JobReading) -> dict[str, tuple[int, int]]:
    return {each.vertex: (each.asked_least, each.asked_most) for each in reading.operators}
