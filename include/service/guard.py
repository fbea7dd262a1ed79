"""Which change of a job is allowed now, and why no other: pure, from what a controller wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import MAXYEAR

from include.service.clock import Timestamp
from include.service.history import NOT_UP, ChangeHistory, named
from include.service.limits import Bounds, ChangeLimits
from include.service.reading import JobReading, OperatorReading


@dataclass(frozen=True, slots=True)
class Permission:
    """The change that is allowed; upper bounds of none while something holds all of it."""

    asks: Mapping[str, int] = field(default_factory=dict)
    """Upper bound by operator, of those that change."""
    instances: int = 0
    """By which the change counts against the limit of an hour."""
    held: tuple[str, ...] = ()
    """Why nothing changes at all."""
    cuts: Mapping[str, str] = field(default_factory=dict)
    """Why an operator does not get what is wanted for it."""
    back: bool = False
    """Whether it takes the last change back."""


@dataclass(frozen=True, slots=True)
class Present:
    """When it is decided, and from a reading of when."""

    now: Timestamp
    read: Timestamp
    stopped: str = ""
    """Why nothing may change, whatever is read; "" when nothing stops it."""


def allowed_change(
    wanted: Mapping[str, int],
    reading: JobReading,
    limits: ChangeLimits,
    history: ChangeHistory,
    present: Present,
) -> Permission:
    """What of ``wanted``, instances by operator, may be asked for now.

    A change counts by its distance from what runs or from what was asked for before, whichever is
    larger; a bound above ``most`` was asked for by nobody who knew the limits, and does not count.
    """
    held = tuple(_holds(reading, limits, history, present))
    if held:
        return Permission(held=held)
    asks: dict[str, int] = {}
    cuts: dict[str, str] = {}
    there = {each.operator: each for each in reading.operators}
    room = left = max(0, limits.changed_instances_per_hour - history.spent(present.now))
    for name in sorted(wanted, key=lambda name: _turn(name, wanted[name], there.get(name))):
        operator, limit = there.get(name), limits.of(name)
        if operator is None:
            cuts[name] = "the job has no such operator"
        elif limit is None:
            cuts[name] = "it has no limits, and is left as it is"
        elif wanted[name] == operator.parallelism < operator.asked_most <= limit.most:
            continue  # as it is: what was asked for lacks slots, and may still come up
        else:
            count, cut = _nearest(wanted[name], operator, limit, left)
            if cut:
                cuts[name] = cut
            if count is not None and count != operator.asked_most:
                asks[name] = count
                left -= max(abs(count - base) for base in _bases(operator, limit))
    return Permission(asks=asks, instances=room - left, cuts=cuts)


def way_back(
    reading: JobReading, limits: ChangeLimits, history: ChangeHistory, present: Present
) -> Permission | None:
    """The bounds before the last change, where that did not come up and the job is down since.

    Once for a change, as soon as it counts as failed; None where that is not so, or somebody else
    changed the job since. What was there before needs no controller that wants it, and no limit
    keeps a job down: only a pause and an old reading do.
    """
    last, failed = history.last_sent, history.failed
    if reading.running or not reading.elastic or reading.job != history.job:
        return None
    if last is None or last.back or last.state != NOT_UP or not last.down or failed is None:
        return None
    now, since = present.now, (history.others, history.job_since)
    if any(at is not None and now.since(at) <= now.since(last.at) for at in since):
        return None
    if now.since(failed) > limits.up_within_s:
        return None
    if held := tuple(_cannot_act(limits, present)):
        return Permission(held=held, back=True)
    instances = sum(abs(last.before[name] - count) for name, count in last.asks.items())
    return Permission(last.before, instances, back=True)


def _cannot_act(limits: ChangeLimits, present: Present) -> Iterator[str]:
    """Reasons that lie in this service."""
    if present.stopped:
        yield present.stopped
    if present.now.since(present.read) > limits.reading_age_s:
        yield f"the reading is older than {limits.reading_age_s:g} s"


def _holds(
    reading: JobReading, limits: ChangeLimits, history: ChangeHistory, present: Present
) -> Iterator[str]:
    """Every reason why nothing may change now."""
    yield from _cannot_act(limits, present)
    yield from _not_ready(reading)
    there = {each.operator for each in reading.operators}
    if strangers := sorted(set(limits.operators) - there):
        yield (
            f"the limits name {', '.join(strangers)}, and the job has only "
            f"{', '.join(sorted(there))}; correct the limits and start again"
        )
    if (end := limits.quiet_until(present.now.at_s)) is not None:
        ends = f"until {end:%A %H:%M} ({limits.time_zone})" if end.year < MAXYEAR else "without end"
        yield f"quiet hours {ends}"
    if history.job != reading.job:
        yield "the job was never read before"
    yield from _just_changed(limits, history, present.now)


def _not_ready(reading: JobReading) -> Iterator[str]:
    """Reasons that lie in the job, or in how well it is known."""
    if not reading.running:
        yield f"the job is {reading.state}, not RUNNING"
    elif not reading.elastic:
        yield "Flink takes no changes: the job needs the adaptive scheduler, without reactive mode"
    if reading.running and not reading.started_s > 0:
        yield "it is not known since when all of the job runs"
    if reading.checkpoint_running:
        yield "a checkpoint is under way"
    if reading.missing:
        yield f"readings are missing: {'; '.join(reading.missing)}"


def _just_changed(limits: ChangeLimits, history: ChangeHistory, now: Timestamp) -> Iterator[str]:
    """Reasons that lie in changes before, ours and those of others."""
    if history.pending:
        yield f"the change to {named(history.pending.asks)} is not up yet"
    last = history.last.at if history.last else None
    doubled_s = limits.wait_after_failure_s * 2.0 ** min(history.failures - 1, 60)
    failed = "the last change did not come up"
    if history.failures > 1:
        failed = f"{history.failures} changes in a row did not come up"
    waits = (
        (history.job_since, limits.between_changes_s, "the job is new to this service"),
        (last, limits.between_changes_s, "the last change was too short ago"),
        (history.failed, min(limits.longest_wait_s, doubled_s), failed),
        (history.others, limits.respect_others_s, "somebody else changed what the job asks for"),
    )
    for since, wait_s, why in waits:
        if since is not None and now.since(since) < wait_s:
            until = f"{limits.local(since.at_s + wait_s):%H:%M:%S} ({limits.time_zone})"
            yield f"{why}; hands off until {until}"


def _turn(name: str, wanted: int, operator: OperatorReading | None) -> tuple[float, str]:
    """Those that lack most come first, so that they get what is left of an hour."""
    runs = operator.parallelism if operator else 0
    return -wanted / max(1, runs), name


def _nearest(
    wanted: int, operator: OperatorReading, limit: Bounds, left: int
) -> tuple[int | None, str]:
    """The allowed number that is nearest to what is wanted, and what keeps it from that."""
    bases = _bases(operator, limit)
    spans = (
        (limit.least, limit.most, f"the limits are {limit.least} to {limit.most}"),
        (
            operator.asked_least,
            operator.max_parallelism,
            f"the job itself allows {operator.asked_least} to {operator.max_parallelism}",
        ),
        (*_around(bases, limit.most_at_once), f"at most {limit.most_at_once} at once"),
        (*_around(bases, left), f"{left} more may change in this hour"),
    )
    low, high = max(span[0] for span in spans), min(span[1] for span in spans)
    if low > high:
        now = f"{operator.parallelism} run and {operator.asked_most} are asked for"
        return None, f"{now}: {'; '.join(span[2] for span in spans)}"
    count = min(max(wanted, low), high)
    binding = low if count > wanted else high
    return count, "; ".join(
        cut for least, most, cut in spans if count != wanted and binding in (least, most)
    )


def _bases(operator: OperatorReading, limit: Bounds) -> tuple[int, ...]:
    """The numbers that a change is counted from."""
    asked = (operator.asked_most,) if operator.asked_most <= limit.most else ()
    return (operator.parallelism, *asked)


def _around(bases: tuple[int, ...], distance: int) -> tuple[int, int]:
    return max(bases) - distance, min(bases) + distance
