"""What a job did between two polls: counters as rates, and how long a record takes through it; and
what it has done since the service began, added up over its restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from include.model.topology import slowest_paths
from include.service.reading import JobReading, OperatorReading

COUNTED_ONCE = 1.5
"""Targets that together take in so many times what was counted each get all of it."""
STUCK_SHARE = 0.5
"""An operator that takes in nothing and is busy for more of the time, or holds up the one before
it for so long, is stuck."""
SPENT = ("busy_s", "idle_s", "back_pressured_s")
COUNTERS = ("records_in", "records_out", *SPENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRates:
    """One operator between two polls; None is what the counters do not tell.

    Shares are means over its subtasks and the whole time.
    """

    in_per_s: float | None = None
    out_per_s: float | None = None
    taken_per_s: float | None = None
    """Records that it takes in; of a source whose reader counts nothing, those it gives on."""
    busy_share: float | None = None
    idle_share: float | None = None
    back_pressured_share: float | None = None
    work_s: float | None = None
    """How long a subtask is busy with one record."""


NO_RATES = OperatorRates()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRates:
    """The job between two fetches of its metrics by Flink."""

    since_s: float
    """For how long counters grew, which is not the time between polls when a fetch was late."""
    operators: Mapping[str, OperatorRates]
    rate_per_s: float | None
    """Records that its sources took in."""
    arrivals_per_s: float | None
    """Records that came for its sources; None where one does not say how many wait."""
    lag_records: float | None
    """Records that wait for its sources."""
    latency_s: float | None
    """An estimate: what waits over the rate at which it is taken in, and the work on a record,
    along the slowest path from what waits for the sources."""
    busy_share: float | None
    """Of the operator that is busiest: 1 is a job at its limit."""


def comparable(before: JobReading, now: JobReading) -> bool:
    """Whether counters went on: the same job, running, and not started again in between."""
    if None not in (before.restarts, now.restarts) and before.restarts != now.restarts:
        return False  # where a region alone was started again, the start of the job may stay
    same = before.job == now.job and before.started_s == now.started_s
    return same and before.running and now.running and before.instances == now.instances


def fetched(before: JobReading, now: JobReading) -> bool:
    """Whether Flink has fetched metrics in between: time that subtasks spend always grows."""
    was, are = _counters(before.operators), _counters(now.operators)
    both = zip(was, are, strict=False)
    return len(was) != len(are) or any(a != b for a, b in both if a is not None and b is not None)


def rates_between(before: JobReading, now: JobReading) -> JobRates | None:
    """What was done between; None where counters began again or nothing was fetched since."""
    if not comparable(before, now) or not fetched(before, now):
        return None
    first = {op.operator: op for op in before.operators}
    since_s = _grew_for_s(before, now)
    if since_s <= 0:
        return None
    rates = {op.operator: _operator(first[op.operator], op, since_s) for op in now.operators}
    sources = [op for op in now.operators if op.operator in now.sources]
    pending = whole_sum(source.pending_records for source in sources)
    was_pending = whole_sum(first[source.operator].pending_records for source in sources)
    rate = whole_sum(rates[source.operator].taken_per_s for source in sources)
    arrivals = None
    if rate is not None and pending is not None and was_pending is not None:
        arrivals = max(0.0, rate + (pending - was_pending) / since_s)
    busy = [op.busy_share for op in rates.values() if op.busy_share is not None]
    return JobRates(
        since_s=since_s,
        operators=rates,
        rate_per_s=rate,
        arrivals_per_s=arrivals,
        lag_records=pending,
        latency_s=_latency_s(now, rates),
        busy_share=max(busy, default=None),
    )


def _counters(operators: Iterable[OperatorReading]) -> list[float | None]:
    return [getattr(op, name) for op in operators for name in COUNTERS]


def _grew_for_s(before: JobReading, now: JobReading) -> float:
    """By what subtasks say that they spent, which is fetched with the counters; the median over
    operators, or the time between the polls where none says it."""
    first = {op.operator: op for op in before.operators}
    spent = [
        grew / op.parallelism
        for op in now.operators
        if (grew := whole_sum(_growths(first[op.operator], op, SPENT).values()))
    ]
    return median(spent) if spent else now.at_s - before.at_s


def _operator(before: OperatorReading, now: OperatorReading, since_s: float) -> OperatorRates:
    grew = _growths(before, now, COUNTERS)
    spent = [grew[name] for name in SPENT]
    whole = whole_sum(spent)
    busy, idle, pressed = (None if not whole else (part or 0.0) / whole for part in spent)
    taken = grew["records_in"]
    per_s = {name: None if each is None else each / since_s for name, each in grew.items()}
    counts = before.records_in is not None or now.records_in is not None
    return OperatorRates(
        in_per_s=per_s["records_in"],
        out_per_s=per_s["records_out"],
        taken_per_s=per_s["records_in" if counts else "records_out"],
        busy_share=busy,
        idle_share=idle,
        back_pressured_share=pressed,
        work_s=busy * since_s * now.parallelism / taken if taken and busy is not None else None,
    )


def _growths(
    before: OperatorReading, now: OperatorReading, names: Iterable[str]
) -> dict[str, float | None]:
    return {name: _growth(getattr(before, name), getattr(now, name)) for name in names}


def _growth(before: float | None, now: float | None) -> float | None:
    """None also where a counter went back: a part of the job was started again."""
    return None if before is None or now is None or now < before else now - before


def whole_sum(values: Iterable[float | None]) -> float | None:
    """The sum; None of nothing, and where a part is unknown."""
    parts = list(values)
    return None if not parts or None in parts else sum(part for part in parts if part is not None)


def waiting_in_flink(now: JobReading) -> dict[str, float]:
    """Records on their way to each operator: sent to it, and not taken in yet.

    By counters since the job started last, so what a restored checkpoint had in flight is not in
    it. Flink counts what an operator sends over all edges together; each target is taken to get the
    share that it takes in, or all where every one takes in as much as was counted.
    """
    taken = {op.operator: op.records_in for op in now.operators}
    sent = dict.fromkeys(taken, 0.0)
    targets: dict[str, list[str]] = {name: [] for name in taken}
    for origin, target in now.edges:
        targets[origin].append(target)
    for op in now.operators:
        own = targets[op.operator]
        whole = sum(taken[name] or 0.0 for name in own)
        for name in own:
            out, share = op.records_out or 0.0, (taken[name] or 0.0) / whole if whole else 0.0
            once = len(own) > 1 and whole > COUNTED_ONCE * out
            sent[name] += out if len(own) == 1 or once else out * share
    return {
        name: 0.0 if (count := taken[name]) is None else max(0.0, sent[name] - count)
        for name in taken
    }


def path_s(now: JobReading, rates: Mapping[str, OperatorRates]) -> dict[str, float | None]:
    """How long a record takes at each operator: what waits before it, and the work on it; None
    where nobody knows how long it waits outside, or before an operator that takes in nothing. What
    a job that is idle has not taken in is left over, and waits for nothing."""
    waiting = waiting_in_flink(now)
    takes: dict[str, float | None] = {}
    for op in now.operators:
        of = rates[op.operator]
        rate = of.taken_per_s
        waits_s = waiting[op.operator] / rate if rate else 0.0
        takes[op.operator] = waits_s + (of.work_s or 0.0)
        if rate is None or (not rate and waiting[op.operator] and _stuck(op.operator, now, rates)):
            takes[op.operator] = None
        if op.pending_records:
            takes[op.operator] = op.pending_records / rate if rate else None
    return takes


def _stuck(operator: str, now: JobReading, rates: Mapping[str, OperatorRates]) -> bool:
    targets = Counter(origin for origin, _ in now.edges)  # of several, another may hold it up
    before = [of for of, to in now.edges if to == operator and targets[of] == 1]
    shares = [rates[operator].busy_share, *(rates[of].back_pressured_share for of in before)]
    return max(share or 0.0 for share in shares) > STUCK_SHARE


def _latency_s(now: JobReading, rates: Mapping[str, OperatorRates]) -> float | None:
    """Along the slowest path; None where nobody knows how long a source keeps records waiting."""
    takes = path_s(now, rates)
    known = {name: value for name, value in takes.items() if value is not None}
    if len(known) < len(takes):
        return None
    return max(slowest_paths(known, now.edges).values(), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTotals:
    """Records, and seconds that subtasks were busy and were there."""

    arrived: float = 0.0
    completed: float = 0.0
    busy_s: float = 0.0
    spent_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """By operator, and of sources what came for them. Never goes back."""

    operators: Mapping[str, OperatorTotals] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    job: str = ""
    """Flink's id of the job of the last reading, and when that began to run."""
    job_started_s: float = 0.0
    subtasks: Mapping[str, int] = field(default_factory=dict)
    """Of each operator at the last reading."""
    job_starts: int = 0
    """Starts between two readings, also of a new deployment. Of several the last counts."""
    job_changes: int = 0
    """Those after which it had other subtasks, and for how long it was down before them."""
    paused_for_changes_s: float = 0.0


def waiting_for(now: JobReading) -> dict[str, float]:
    """Records that wait for each operator: on their way to it, and outside Flink for it if it is a
    source, or for sources before it that cannot be scaled."""
    pending = {op.operator: op.pending_records or 0.0 for op in now.operators}
    waiting = {name: count + pending[name] for name, count in waiting_in_flink(now).items()}
    for origin, target in now.edges:
        if origin not in now.scaled:
            waiting[target] += pending[origin]
    return waiting


def added(before: Totals, now: JobReading, rates: JobRates) -> Totals:
    """The totals with what was done since the last reading that they have."""
    waiting = waiting_for(now)
    operators = dict(before.operators)
    published = dict(before.published)
    for op in now.operators:
        was = operators.get(op.operator, OperatorTotals())
        of = rates.operators[op.operator]
        operators[op.operator] = _grown(was, op, of, rates.since_s, waiting[op.operator])
        if op.operator in now.sources:
            done = operators[op.operator].completed
            came = done + (op.pending_records or 0.0)
            published[op.operator] = max(came, published.get(op.operator, 0.0))
    paused_s = _paused_s(before, now)
    subtasks = {op.operator: op.parallelism for op in now.operators}
    changed = paused_s > 0 and before.subtasks not in ({}, subtasks)
    started = paused_s > 0 or before.job not in ("", now.job)
    return Totals(
        operators=operators,
        published=published,
        job=now.job,
        job_started_s=now.started_s,
        subtasks=subtasks,
        job_starts=before.job_starts + started,
        job_changes=before.job_changes + changed,
        paused_for_changes_s=before.paused_for_changes_s + paused_s * changed,
    )


def _paused_s(before: Totals, now: JobReading) -> float:
    """How long it was down before a start that was not seen before; 0 of any other start."""
    seen = before.job == now.job and before.job_started_s < now.down_s
    return max(0.0, (now.up_s or now.started_s) - now.down_s) if seen else 0.0


def _grown(
    was: OperatorTotals,
    now: OperatorReading,
    of: OperatorRates,
    since_s: float,
    waiting: float,
) -> OperatorTotals:
    completed = was.completed + (of.taken_per_s or 0.0) * since_s
    spent_s = 0.0 if of.busy_share is None else since_s * now.parallelism
    return OperatorTotals(
        arrived=max(was.arrived, completed + waiting),
        completed=completed,
        busy_s=was.busy_s + (of.busy_share or 0.0) * spent_s,
        spent_s=was.spent_s + spent_s,
    )
