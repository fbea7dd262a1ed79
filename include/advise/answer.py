"""Which policy would have run a recorded job at the lowest cost while its objective held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from math import ceil

import numpy as np

from include.advise.candidates import Policy, tried
from include.advise.cluster import ReplayLease
from include.advise.job import JobModel, Readings, fit, lasting_changes, readings_of
from include.advise.objective import LatencyObjective
from include.advise.replay import ReplayConditions, Replayed, replay
from include.model.billing import MONTH_S, CloudPriceBook
from include.model.errors import SpecError
from include.model.host import PriceBook
from include.recordings import Recording
from include.recordings.recording import FloatArray

DAY_S = 86_400.0
DAYS_TO_DRAW = 3
"""A recording of at least so many whole days gives every seed but the first drawn days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: the objective, the price of a host, and what a replay takes for granted."""

    objective: LatencyObjective
    book: PriceBook
    conditions: ReplayConditions
    seeds: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """One policy over one load: cost of a month, share within the limit, and how it went."""

    cost: float
    within: float
    worst_hour: float
    scalings_a_day: float
    mean_instances: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """One policy over all seeds. ``regret`` is its mean cost over the bound's."""

    policy: Policy
    outcomes: tuple[PolicyOutcome, ...]
    regret: float
    holds: bool

    @property
    def cost(self) -> float:
        """Mean cost of a month."""
        return float(np.mean([one.cost for one in self.outcomes]))

    @property
    def within(self) -> float:
        """Mean share within the limit."""
        return float(np.mean([one.within for one in self.outcomes]))


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """A policy under changed conditions, and whether the objective still holds."""

    change: str
    policy: Policy
    outcome: PolicyOutcome
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything that the page says. ``rows`` are those that hold the objective by cost, then the
    others by how much they miss; ``recommended`` is the first, or None when none holds.

    ``sure`` is the share of seeds in which it was the cheapest that held.
    """

    question: Question
    job: JobModel
    read: Readings
    as_run: PolicyRow
    rows: tuple[PolicyRow, ...]
    recommended: PolicyRow | None
    sure: float
    bound_cost: float
    bound_hosts: FloatArray
    shown: Replayed
    what_if: tuple[WhatIf, ...]
    fidelity: tuple[tuple[str, float, float], ...]
    """Of the model fed with recorded load and instances: name, mean as replayed, as recorded."""


def advise(recording: Recording, question: Question) -> Answer:
    """The answer. Raises SpecError with what the recording lacks."""
    job, read = fit(recording), readings_of(recording)
    if np.isnan(job.quiet_latency_s):
        told = "has no latency; map it (--map latency=COLUMN): an objective is about latency"
        raise SpecError(recording.name, [told])
    needed = np.ceil(read.load_per_s / job.most_per_s)
    usual = ceil(float(np.median(read.load_per_s)) / _rate_at_half(job))
    peak = ceil(float(read.load_per_s.max()) / _rate_at_half(job))
    most = question.conditions.max_instances
    policies = tried(question.conditions, min(peak, most), min(usual, most))
    loads = [load_of(read, seed) for seed in range(1, question.seeds + 1)]
    asked = [
        (job, load, _seeded(question, seed), policy)
        for policy, (seed, load) in product(policies, enumerate(loads, start=1))
    ]
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(_outcome, *zip(*asked, strict=True)))
    bound_hosts = np.ceil(needed / question.conditions.instances_per_host)
    bound_cost = _monthly(
        float(bound_hosts.sum()) * read.step_s * question.book.price_per_btu / question.book.btu_s,
        read,
    )
    n = question.seeds
    rows = [
        row_of(policy, found[i * n : i * n + n], bound_cost, question)
        for i, policy in enumerate(policies)
    ]
    rows.sort(key=lambda row: (not row.holds, row.cost if row.holds else -row.within))
    best = rows[0] if rows[0].holds else None
    as_run = row_of(Policy("as it was run", ""), [_as_run(read, question)], bound_cost, question)
    shown = best or rows[0]
    return Answer(
        question=question,
        job=job,
        read=read,
        as_run=as_run,
        rows=tuple(rows),
        recommended=best,
        sure=_sure(rows, question) if best else 0.0,
        bound_cost=bound_cost,
        bound_hosts=bound_hosts,
        shown=_replayed(job, loads[0], _seeded(question, 1), shown.policy),
        what_if=tuple(_what_if(job, loads[0], question, rows[:3])),
        fidelity=_fidelity(job, read),
    )


def _rate_at_half(job: JobModel) -> float:
    """Records per second of an instance at half its CPU, or the most that was seen if less."""
    rates = np.linspace(0, job.most_per_s, 2000)
    reached = np.flatnonzero(job.cpu_share(rates) >= 0.5)
    return float(rates[reached[0]]) if reached.size and reached[0] else job.most_per_s


def load_of(read: Readings, seed: int) -> FloatArray:
    """The recorded load for the first seed; for the others days drawn from it, where it has them.

    A recording of fewer days is the same load for every seed: other days are not known.
    """
    per_day = round(DAY_S / read.step_s)
    days = read.load_per_s.size // per_day
    if seed == 1 or days < DAYS_TO_DRAW:
        return read.load_per_s
    drawn = np.random.default_rng(seed).integers(0, days, days)
    return np.concatenate([read.load_per_s[day * per_day : (day + 1) * per_day] for day in drawn])


def _seeded(question: Question, seed: int) -> Question:
    return replace(question, conditions=replace(question.conditions, seed=seed))


def _outcome(job: JobModel, load: FloatArray, question: Question, policy: Policy) -> PolicyOutcome:
    run = _replayed(job, load, question, policy)
    return outcome_of(run, load, job.step_s, question)


def _replayed(job: JobModel, load: FloatArray, question: Question, policy: Policy) -> Replayed:
    start = policy.at_start or question.conditions.instances_at_start
    conditions = replace(question.conditions, instances_at_start=start)
    return replay(job, load, conditions, policy.build())


def outcome_of(run: Replayed, load: FloatArray, step_s: float, question: Question) -> PolicyOutcome:
    """What a replay cost, and how it held the objective."""
    days = load.size * step_s / DAY_S
    return PolicyOutcome(
        cost=cost_of(run.leases, question.book, load.size * step_s, step_s),
        within=question.objective.within(load, run.latency_s),
        worst_hour=_worst_hour(load, run.latency_s, step_s, question.objective),
        scalings_a_day=run.scalings / days,
        mean_instances=float(run.instances.mean()),
    )


def cost_of(
    leases: Iterable[ReplayLease], book: PriceBook, lasted_s: float, step_s: float
) -> float:
    """Cost of a month of leases like these, in the currency of the book."""
    leases = list(leases)
    if isinstance(book, CloudPriceBook) and book.reserved:
        times_s = np.arange(0, lasted_s, step_s)
        held = [float(sum(a.ordered_s <= t_s < a.ends_s for a in leases)) for t_s in times_s]
        return book.fleet_cost(held, step_s) * MONTH_S / lasted_s
    return sum(book.bill(one.ends_s - one.ordered_s) for one in leases) * MONTH_S / lasted_s


def _worst_hour(
    load: FloatArray, latency: FloatArray, step_s: float, of: LatencyObjective
) -> float:
    """The lowest share within the limit of any whole hour."""
    per_hour = round(3600 / step_s)
    hours = range(0, max(1, load.size - per_hour + 1), per_hour)
    shares = [
        of.within(load[at : at + per_hour], latency[at : at + per_hour])
        for at in hours
        if not np.isnan(latency[at : at + per_hour]).all()
    ]
    return min(shares)


def row_of(
    policy: Policy, outcomes: Sequence[PolicyOutcome], bound_cost: float, question: Question
) -> PolicyRow:
    """A policy's row; it holds the objective when it does so with every seed."""
    mean = float(np.mean([one.cost for one in outcomes]))
    return PolicyRow(
        policy=policy,
        outcomes=tuple(outcomes),
        regret=mean / bound_cost,
        holds=all(one.within >= question.objective.share for one in outcomes),
    )


def _sure(rows: Sequence[PolicyRow], question: Question) -> float:
    won = 0
    for seed in range(question.seeds):
        held = [row for row in rows if row.outcomes[seed].within >= question.objective.share]
        won += min(held, key=lambda row: row.outcomes[seed].cost, default=None) is rows[0]
    return won / question.seeds


def _monthly(cost: float, read: Readings) -> float:
    return cost * MONTH_S / (read.load_per_s.size * read.step_s)


def _as_run(read: Readings, question: Question) -> PolicyOutcome:
    """What the recording says of itself; hosts are given back in the reverse order."""
    counts = _known(read.instances)
    leases = leases_of(np.ceil(counts / question.conditions.instances_per_host), read.step_s)
    run = Replayed(
        instances=counts,
        cpu_share=read.cpu_share,
        lag_items=read.lag_items,
        latency_s=read.latency_s,
        leases=tuple(leases),
        scalings=int(lasting_changes(counts).sum()),
    )
    return outcome_of(run, read.load_per_s, read.step_s, question)


def _known(values: FloatArray) -> FloatArray:
    """Absent readings as the last one before them, or the first one after."""
    known = np.flatnonzero(~np.isnan(values))
    before = np.searchsorted(known, np.arange(values.size), side="right") - 1
    result: FloatArray = np.round(values[known[np.maximum(0, before)]])
    return result


def leases_of(hosts: FloatArray, step_s: float) -> list[ReplayLease]:
    """Leases that give so many hosts in every step."""
    held, ended = list[ReplayLease](), list[ReplayLease]()
    for step, count in enumerate(hosts.tolist()):
        while len(held) < count:
            held.append(ReplayLease(step * step_s, step * step_s))
        while len(held) > count:
            lease = held.pop()
            lease.ends_s = step * step_s
            ended.append(lease)
    for lease in held:
        lease.ends_s = hosts.size * step_s
    return [*ended, *held]


def _what_if(
    job: JobModel, load: FloatArray, question: Question, rows: Sequence[PolicyRow]
) -> Iterable[WhatIf]:
    """The first rows again, one thing changed at a time."""
    given = question.conditions
    slower = replace(given, takes_s=2 * given.takes_s, seed=1)
    wider = replace(given, max_instances=2 * given.max_instances, seed=1)
    changes = (
        ("starts take twice as long", load, slower),
        ("the load doubles, and so does the most there may be", 2 * load, wider),
    )
    for change, changed, conditions in changes:
        for row in rows:
            asked = replace(question, conditions=conditions)
            policy = row.policy
            if policy.options.get("max_instances") == given.max_instances:
                options = {**policy.options, "max_instances": conditions.max_instances}
                policy = replace(policy, options=options)
            outcome = _outcome(job, changed, asked, policy)
            yield WhatIf(
                change=change,
                policy=row.policy,
                outcome=outcome,
                holds=outcome.within >= question.objective.share,
            )


def _fidelity(job: JobModel, read: Readings) -> tuple[tuple[str, float, float], ...]:
    """Load and instances as recorded, through the model: what it gives back."""
    each = read.load_per_s / np.maximum(read.instances, 1.0)
    cpu = job.cpu_share(np.nan_to_num(each))
    known = ~np.isnan(read.cpu_share) & ~np.isnan(each)
    quiet = np.full(read.load_per_s.size, job.quiet_latency_s)
    return (
        ("mean CPU", float(cpu[known].mean()), float(read.cpu_share[known].mean())),
        ("median latency, s", float(np.median(quiet)), float(np.nanmedian(read.latency_s))),
        (
            "median of the records that wait",
            float(np.median(read.load_per_s * job.quiet_lag_s)),
            float(np.nanmedian(read.lag_items)),
        ),
    )
