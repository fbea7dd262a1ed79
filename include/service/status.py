"""What the service knows at this moment, and of the last day: for its page, metrics and health."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from include.service.act import Actor
from include.service.rates import JobRates, comparable
from include.service.reading import JobReading
from include.service.rest import POLL_WITHIN_S, NoSuchJobError
from include.service.shadow import DECISIONS, Advised, decisions_in
from include.testbeds.flink.rest import NoAnswerError

DAY_S = 86_400.0
MOST_POINTS = 20_000
"""Of the last day; more than 24 controllers at a decision every two minutes are cut."""
LAST_BYTES = 64_000_000
"""Of the decisions on disk: more than a day of four controllers and a dozen operators."""
MISSED_TURNS = 3
"""A service that has not turned for so long is not well, and rates that are older not of now."""


@dataclass(frozen=True, slots=True)
class StatusPoint:
    """Instances of all operators that ran, and that one controller wanted then."""

    at_s: float
    controller: str
    instances: int
    wanted: int


@dataclass(slots=True)
class ShadowStatus:
    """One writer, the loop; readers see whole values, as each is put in place at once."""

    job: str
    url: str
    """Where the job was read last."""
    every_s: float
    moved_s: float = 0.0
    """Since when it is read there, if it was read at another address before; else 0."""
    turned_s: float = 0.0
    """When it last tried to poll: by the clock of the machine, which may be set,"""
    turned_up_s: float = field(default_factory=time.monotonic)
    """and by one that nobody can set."""
    answered: bool = False
    """Whether Flink answered the last poll, and if so,"""
    job_missing: bool = False
    """whether it had no job of that name."""
    trouble: str = ""
    """Why the last poll gave no reading; "" when it gave one."""
    polls: int = 0
    missed: int = 0
    """Polls with a reading, and without."""
    reading: JobReading | None = None
    read_up_s: float = -math.inf
    """When it was kept, by ``time.monotonic``."""
    rates: JobRates | None = None
    rated_s: float = 0.0
    """When the reading was that they came with."""
    advised: Mapping[str, Sequence[Advised]] = field(default_factory=dict)
    """The last decision of each controller."""
    decided: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    actor: Actor | None = None
    """Who follows what is advised; None: nobody does."""
    day: deque[StatusPoint] = field(default_factory=lambda: deque(maxlen=MOST_POINTS))

    def turned(self) -> None:
        """Take over that the loop turns, whatever the poll brings."""
        self.turned_s, self.turned_up_s = time.time(), time.monotonic()

    def polled(
        self, now: JobReading, rates: JobRates | None, own: Mapping[str, Sequence[Advised]]
    ) -> None:
        """Take over a reading and what each controller advised on it."""
        self.answered, self.job_missing, self.trouble = True, False, ""
        self.polls += 1
        if now.url not in ("", self.url):
            self.url, self.moved_s = now.url, now.at_s
        if rates is not None:
            self.rates, self.rated_s = rates, now.at_s
        elif not self._holds(now):
            self.rates = None
        self.reading, self.read_up_s = now, time.monotonic()
        self.advised = {**self.advised, **own}
        self.decided = self.decided + Counter(own.keys())
        self.failed = self.failed + Counter(name for name, rows in own.items() if rows[0].failed)
        for name, rows in own.items():
            instances = sum(row.instances for row in rows)
            wanted = sum(row.wanted for row in rows)
            self.day.append(StatusPoint(rows[0].time_s, name, instances, wanted))
        while self.day and self.day[0].at_s < now.at_s - DAY_S:
            self.day.popleft()

    def unread(self, error: NoAnswerError) -> None:
        """Take over why there is no reading."""
        self.answered = self.job_missing = isinstance(error, NoSuchJobError)
        self.trouble = str(error)
        self.missed += 1

    def is_well(self, up_s: float) -> bool:
        """Whether the loop turns, at a time of ``time.monotonic``; whether Flink answers is another
        question."""
        return up_s - self.turned_up_s <= self._patience_s

    @property
    def is_current(self) -> bool:
        """Whether the reading is of now: Flink has the job, the loop turns, the disk has room."""
        return not self.trouble and time.monotonic() - self.read_up_s <= self._patience_s

    @property
    def _patience_s(self) -> float:
        """A turn may take as long as a poll."""
        return max(MISSED_TURNS * self.every_s + 10, MISSED_TURNS * POLL_WITHIN_S)

    def _holds(self, now: JobReading) -> bool:
        """Whether the rates are still those of the job: a poll between two fetches has none."""
        same = self.reading is not None and comparable(self.reading, now)
        return same and now.at_s - self.rated_s <= self._patience_s


def remembered(folder: Path, since_s: float) -> list[StatusPoint]:
    """Points of decisions that are on disk, from then on, in their order; of those in the last
    `LAST_BYTES` of the file."""
    path = folder / DECISIONS
    decisions = decisions_in(path, LAST_BYTES)
    if path.stat().st_size > LAST_BYTES:
        next(decisions, None)  # its first rows may be before
    return [
        StatusPoint(
            at_s, name, *(sum(int(row[of]) for row in rows) for of in ("instances", "wanted"))
        )
        for at_s, name, rows in decisions
        if at_s >= since_s
    ]
