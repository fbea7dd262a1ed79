"""What has become of the changes of a job: folded from the journal's entries, and nothing else.

The same entries give the same history, in a service that goes on as in one that was killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from include.service.clock import Timestamp
from include.service.limits import ChangeLimits
from include.service.reading import JobReading

HOUR_S = 3600.0
LATE_S = 120.0
"""A request without an answer may still be carried out so long after it was sent."""

TAKES_OVER_S = 5 * LATE_S
"""Bounds that appear so soon after a request was sent are its own, even if it was given up."""
RUNS_ON_S = 60.0
"""A job that has not run for so long may be one that starts again and again."""
LEAST = 1
"""Flink's lower bound when nobody sets one; entries of older versions do not say it."""

OPEN, TAKEN = "open", "taken"
UP, NOT_UP, NOT_TAKEN, GONE = "up", "not up", "not taken", "gone"
NOT_SENT = "not sent"
"""Stopped after it was written down. It counts against the limits and is no failure."""
NEVER_CAME = (NOT_TAKEN, NOT_SENT)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the journal."""

    at: Timestamp
    kind: str
    about: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MadeChange:
    """Upper bounds that were asked for; ``state`` says how far it came."""

    id: str
    at: Timestamp
    asks: Mapping[str, int]
    instances: int
    """By which it counts against the limit of an hour."""
    state: str = OPEN
    taken: Timestamp | None = None
    """When Flink was known to have taken it."""
    before: Mapping[str, int] = field(default_factory=dict)
    """Upper bounds of the same operators until then."""
    back: bool = False
    """Whether it takes the change before it back."""
    down: bool = False
    """Whether the job was down when it counted as one that did not come up."""


@dataclass(frozen=True, slots=True)
class ChangeHistory:
    """What the next change has to heed."""

    job: str = ""
    """Flink's id; "" before the first reading."""
    job_since: Timestamp | None = None
    """When this service first read it."""
    bounds: Mapping[str, int] = field(default_factory=dict)
    """Upper bounds as they are expected to be."""
    least: Mapping[str, int] = field(default_factory=dict)
    """Lower bounds likewise."""
    found: Mapping[str, int] = field(default_factory=dict)
    """Upper bounds when this deployment of the job was first read."""
    changes: tuple[MadeChange, ...] = ()
    """Those of the last hour, and the last one."""
    others: Timestamp | None = None
    """When somebody else's change was last noticed."""
    failures: int = 0
    """Changes in a row that did not come up."""
    failed: Timestamp | None = None

    @property
    def last(self) -> MadeChange | None:
        return self.changes[-1] if self.changes else None

    @property
    def last_sent(self) -> MadeChange | None:
        """The last change, but for ways back that never came to Flink."""
        sent = [each for each in self.changes if not each.back or each.state not in NEVER_CAME]
        return sent[-1] if sent else None

    @property
    def pending(self) -> MadeChange | None:
        """The last change, while nobody knows how it ends."""
        return self.last if self.last and self.last.state in (OPEN, TAKEN) else None

    def spent(self, now: Timestamp) -> int:
        """Instances that were changed, or asked to be, within the last hour."""
        return sum(each.instances for each in self.changes if now.since(each.at) < HOUR_S)

    def after(self, entry: Entry) -> ChangeHistory:
        about = entry.about
        if entry.kind == "asks":
            change = MadeChange(
                about["id"],
                entry.at,
                about["asks"],
                about["instances"],
                before=about["before"],
                back=about.get("back", False),
            )
            recent = (each for each in self.changes if entry.at.since(each.at) < HOUR_S)
            return replace(self, changes=(*recent, change))
        if entry.kind == "job":
            bounds = about["bounds"]
            return replace(
                self,
                job=about["job"],
                job_since=entry.at,
                bounds=bounds,
                least=about.get("least", {}),
                found=bounds,
            )
        if entry.kind == "others":
            bounds = {**self.bounds, **about["bounds"]}
            least = {**self.least, **about.get("least", {})}
            return replace(self, bounds=bounds, least=least, others=entry.at)
        if entry.kind in (TAKEN, UP, NOT_UP, NOT_TAKEN, NOT_SENT, GONE):
            return self._ended(entry)
        return self

    def _ended(self, entry: Entry) -> ChangeHistory:
        ended = entry.about["id"]
        named = [each for each in self.changes if each.id == ended]
        if not named:
            return self
        taken = entry.at if entry.kind == TAKEN else named[0].taken
        down = entry.about.get("down", False)  # older versions do not say it
        changes = tuple(
            replace(each, state=entry.kind, taken=taken, down=down) if each in named else each
            for each in self.changes
        )
        history = replace(self, changes=changes)
        if entry.kind == TAKEN:
            return replace(history, bounds={**self.bounds, **named[0].asks})
        if entry.kind == UP:
            # That the way back comes up does not make up for what it took back.
            return history if named[0].back else replace(history, failures=0, failed=None)
        if entry.kind in (NOT_UP, NOT_TAKEN):
            if named[0].state == NOT_UP:
                return history  # the same failure, of a job that runs by now
            return replace(history, failures=self.failures + 1, failed=entry.at)
        return history


def news(
    history: ChangeHistory, reading: JobReading, limits: ChangeLimits, now: Timestamp
) -> list[Entry]:
    """What a reading says of the last change and of what others did, as entries to write."""
    if not reading.elastic:
        return []
    bounds = {each.operator: each.asked_most for each in reading.operators}
    least = {each.operator: each.asked_least for each in reading.operators}
    if reading.job != history.job:
        gone = [_of(history.pending, GONE, now)] if history.pending else []
        about = {"job": reading.job, "was": history.job, "bounds": bounds, "least": least}
        return [*gone, Entry(now, "job", about)]
    entries = _answers(history, bounds, now)
    for entry in entries:
        history = history.after(entry)
    differing = {name: most for name, most in bounds.items() if history.bounds.get(name) != most}
    lower = {name: low for name, low in least.items() if history.least.get(name, LEAST) != low}
    if differing or lower:
        about = {
            "bounds": differing,
            "was": {name: history.bounds.get(name) for name in differing},
            "least": lower,
            "least_was": {name: history.least.get(name, LEAST) for name in lower},
        }
        entries.append(Entry(now, "others", about))
    return entries + _ends(history, bounds, reading, limits, now)


def _answers(history: ChangeHistory, bounds: Mapping[str, int], now: Timestamp) -> list[Entry]:
    """Requests of which nobody knew whether Flink had taken them."""
    for change in reversed(history.changes):
        has = {name: bounds.get(name) for name in change.asks}
        if change.state == OPEN and has == change.asks:
            return [_of(change, TAKEN, now)]
        age_s = now.since(change.at)
        if change.state == OPEN and age_s >= LATE_S:  # whatever others do until then
            return [_of(change, NOT_TAKEN, now)]
        late = change.state == NOT_TAKEN and has == change.asks and age_s < TAKES_OVER_S
        if late and any(history.bounds.get(name) != most for name, most in has.items()):
            return [_of(change, TAKEN, now)]
    return []


def _ends(
    history: ChangeHistory,
    bounds: Mapping[str, int],
    reading: JobReading,
    limits: ChangeLimits,
    now: Timestamp,
) -> list[Entry]:
    """Whether the instances of a change that Flink has taken run by now."""
    change = history.pending or history.last_sent
    if change is None or change.state not in (TAKEN, NOT_UP):
        return []
    waits = change.state == TAKEN
    if not waits and history.job_since and now.since(history.job_since) <= now.since(change.at):
        return []  # of a job that was deployed again since, which never had it
    if any(bounds.get(name) != most for name, most in change.asks.items()):
        return [_of(change, GONE, now)] if waits else []
    runs = {name: reading.instances.get(name) for name in change.asks}
    if reading.running and runs == change.asks:
        return [_of(change, UP, now)]  # also late, as where Flink rescales at a checkpoint
    # Down no more: what runs on without all of them may restart, and keeps what it has.
    runs_on = change.down and reading.running and reading.ran_s >= RUNS_ON_S
    if runs_on or (waits and now.since(change.taken or change.at) > limits.up_within_s):
        # One that comes and goes is down, too, when it is there just now.
        down = not reading.running or 0 < reading.ran_s < RUNS_ON_S
        about = {"id": change.id, "asks": change.asks, "runs": runs, "down": down}
        return [Entry(now, NOT_UP, about)]
    return []


def _of(change: MadeChange, kind: str, now: Timestamp) -> Entry:
    return Entry(now, kind, {"id": change.id, "asks": change.asks})


def named(counts: Mapping[str, int]) -> str:
    """Counts by operator, in words."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"
