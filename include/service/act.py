"""A controller that acts on a running job: settle what came before, decide, ask.

One step after each reading, and at most one change in a step. What a step knows of changes before
is in the journal alone, so a service that was killed goes on as if it had only paused.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from include.model.errors import SetupError
from include.service.clock import Timestamp
from include.service.guard import Permission, Present, allowed_change, way_back
from include.service.history import NOT_SENT, TAKEN, ChangeHistory, Entry, news
from include.service.journal import ChangeJournal
from include.service.limits import ChangeLimits
from include.service.pause import why_paused
from include.service.reading import JobReading
from include.service.record import LOCK, file_number
from include.service.rest import FlinkRest
from include.testbeds.flink.rest import NoAnswerError

ENDS = "the service ends"
REPLACED = "the state folder was removed or replaced; end this service and start it again"
RECENT = 100
WRITES_IN_S = 5.0
"""A change that took longer to write down is not sent: the job was looked at before."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Instances that a controller wants by operator, and why; and why that is not followed."""

    counts: Mapping[str, int] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mandate:
    """Who may act on which job, within what, and where the journal is."""

    job_name: str
    controller: str
    limits: ChangeLimits
    really: bool
    """Else a dry run: the journal says what would be asked for."""
    state: Path


class Actor:
    """Acts on one job, from `begin` to `end`. Between them nobody else may write its state."""

    def __init__(
        self,
        mandate: Mandate,
        flink: FlinkRest,
        *,
        ends: Callable[[], bool] = lambda: False,
        now: Callable[[], Timestamp] = Timestamp.now,
    ) -> None:
        self.mandate, self._flink, self._ends, self._now = mandate, flink, ends, now
        self._journal = ChangeJournal(mandate.state)
        self.recent: deque[Entry] = deque(maxlen=RECENT)
        """The newest entries, for the page."""
        self.written: Counter[str] = Counter()
        """Entries of the whole journal by kind."""
        self.history = ChangeHistory()
        self._lock: tuple[int, int] | None = None
        self._noted: Any = None
        self._held: frozenset[str] = frozenset()
        """Reasons that the journal has since the last change."""
        self._paused = ""

    def read_journal(self) -> None:
        """Learn what became of changes before. Raises StoreError for a journal that is damaged."""
        for entry in self._journal.read():
            self._take(entry)

    def begin(self) -> None:
        """Go on from the journal, and say there that this service begins.

        Raises StoreError for a journal that is damaged, SetupError when it cannot be written.
        """
        self._lock = file_number(self.mandate.state / LOCK)
        self.read_journal()
        about = {
            **asdict(self.mandate),
            "limits": self.mandate.limits.model_dump(mode="json", exclude_defaults=True),
            "state": str(self.mandate.state),
            "pid": os.getpid(),
        }
        self._write("began", about)

    def end(self) -> None:
        """Say in the journal how the job is handed back: as it is, with what it asks for."""
        with suppress(SetupError):  # a full disk is no reason not to end
            self._write("ended", {"bounds": self.history.bounds, "found": self.history.found})

    def step(self, reading: JobReading, read: Timestamp, wish: Wish) -> Permission:
        """At most one change, from a reading that was begun at ``read``.

        Never fails for what Flink or the disk does; nothing is changed then.
        """
        try:
            return self._step(reading, read, wish)
        except SetupError as error:
            return Permission(held=(str(error),))

    def _step(self, reading: JobReading, read: Timestamp, wish: Wish) -> Permission:
        self._note_pause()
        for entry in news(self.history, reading, self.mandate.limits, self._now()):
            self._write(entry.kind, entry.about)
        verdict = self._verdict(reading, read, wish)
        acts = self.mandate.really and bool(verdict.asks)
        if acts:
            changed = self._changed_since(reading)
            verdict = (
                Permission(held=(f"{changed}; reading again",))
                if changed
                else self._verdict(reading, read, wish)  # looking took time
            )
        self._note(verdict, wish, reading)
        return self._ask(verdict, wish, reading) if acts and verdict.asks else verdict

    def _changed_since(self, reading: JobReading) -> str:
        """What is no longer as it was read, or cannot be looked at, in words; "" when all is."""
        try:
            look = self._flink.look(reading.job)
        except NoAnswerError as error:
            return str(error)
        if look.name != reading.name:
            return f"Flink has the job {look.name!r} in place of {reading.name!r}"
        read = {each.vertex: (each.asked_least, each.asked_most) for each in reading.operators}
        if look.bounds != read:
            return "what the job asks for changes"
        if (look.state == "RUNNING") != reading.running or (
            reading.running and look.started_s != reading.started_s
        ):
            return "the job restarts or was started again"
        return "a checkpoint has begun" if look.checkpoint_running and reading.running else ""

    def _verdict(self, reading: JobReading, read: Timestamp, wish: Wish) -> Permission:
        present, limits = Present(self._now(), read, self._stopped()), self.mandate.limits
        if back := way_back(reading, limits, self.history, present):
            return back
        present = replace(present, stopped=present.stopped or wish.why_not)
        return allowed_change(wish.counts, reading, limits, self.history, present)

    def _ask(self, verdict: Permission, wish: Wish, reading: JobReading) -> Permission:
        """Send what is allowed, unless somebody stops it while it is written down."""
        change, begins = uuid4().hex[:12], self._now()
        self._held = frozenset()
        self._write("asks", {"id": change, **_about(verdict, wish, reading)})
        wrote_s = self._now().since(begins)
        slow = f"it took {wrote_s:.0f} s to write it down" if wrote_s > WRITES_IN_S else ""
        if stopped := self._stopped() or slow:
            self._write(NOT_SENT, {"id": change, "asks": verdict.asks, "why": stopped})
            return Permission(held=(stopped,))
        bounds = {
            each.vertex: (each.asked_least, verdict.asks.get(each.operator, each.asked_most))
            for each in reading.operators
        }
        answer: tuple[str, dict[str, Any]] = TAKEN, {"id": change, "asks": verdict.asks}
        try:
            self._flink.ask_for(reading.job, bounds)
        except NoAnswerError as error:
            answer = "no answer", {"id": change, "says": str(error)}
        with suppress(SetupError):  # sent it is all the same, and the next reading tells the answer
            self._write(*answer)
        return verdict

    def _stopped(self) -> str:
        """Why nothing may be changed at all, whatever is read; "" when nothing stops it."""
        if self._ends():
            return ENDS
        return self._replaced() or why_paused(self.mandate.state)

    def _replaced(self) -> str:
        """The lease is on a file: with another one in its place, another service may have it."""
        return REPLACED if file_number(self.mandate.state / LOCK) != self._lock else ""

    def _note(self, verdict: Permission, wish: Wish, reading: JobReading) -> None:
        """Say once what is held or cut of what is wanted, and in a dry run what would be done."""
        most = {each.operator: each.asked_most for each in reading.operators}
        if not verdict.asks and all(
            most.get(name) in (None, count) for name, count in wish.counts.items()
        ):
            return
        would = verdict.asks if not self.mandate.really else {}
        noted = (dict(would), dict(verdict.cuts))
        if self._held.issuperset(verdict.held) if verdict.held else noted == self._noted:
            return  # a checkpoint comes and goes all day
        if would:
            self._write("would", _about(verdict, wish, reading))
        elif verdict.held or (verdict.cuts and not verdict.asks):
            about = {"held": verdict.held, "wanted": wish.counts, "cuts": verdict.cuts}
            self._write("held", about)
        if verdict.held:
            self._held = self._held.union(verdict.held)
        else:
            self._noted = noted

    def _note_pause(self) -> None:
        paused = why_paused(self.mandate.state)
        if paused != self._paused:
            self._write("paused" if paused else "resumed", {"why": paused})
            self._paused = paused

    def _write(self, kind: str, about: Mapping[str, Any]) -> None:
        if replaced := self._replaced():
            raise SetupError(replaced)  # the journal there is another service's
        entry = Entry(self._now(), kind, about)
        self._journal.append(entry)
        self._take(entry)

    def _take(self, entry: Entry) -> None:
        self.history = self.history.after(entry)
        self.recent.append(entry)
        self.written[entry.kind] += 1


def _about(verdict: Permission, wish: Wish, reading: JobReading) -> dict[str, Any]:
    most = {each.operator: each.asked_most for each in reading.operators}
    return {
        "asks": verdict.asks,
        "before": {name: most[name] for name in verdict.asks},
        "instances": verdict.instances,
        "wanted": wish.counts,
        "why": {name: wish.why[name] for name in verdict.asks if name in wish.why},
        "cuts": verdict.cuts,
        "back": verdict.back,
    }
