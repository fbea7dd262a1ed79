"""Which policy would have run a recorded job at the lowest cost while its objective held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from include.advise.bill import HostBound, bound_of
from include.advise.candidates import CAPPED, Policy, fixed
from include.advise.case import Case, Question, seeded
from include.advise.job import JobModel
from include.advise.outcomes import (
    PolicyOutcome,
    forget_outcomes,
    measure_policy,
    measure_recorded,
    outcome,
    replayed,
)
from include.advise.ranking import build_ranking, check_ranking
from include.advise.readings import Readings
from include.advise.replay import Replayed
from include.model.billing import CloudPriceBook
from include.model.host import PriceBook
from include.results.tables.catalogue import ADVICE_RANKING
from include.results.tables.staged import read_staged

AT_ONCE = 2
HOUR_S = 3600.0
ASKED_WHAT_IF = 3
"""So many of the first policies are tried under other conditions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """A row of the table advice_ranking; None as policy is the job as it was run."""

    policy: Policy | None
    name: str
    holds: bool
    guessed: bool
    cost: float
    lowest_cost: float
    highest_cost: float
    regret: float
    within: float
    worst_hour: float
    scalings_a_day: float
    mean_instances: float
    seeds: int
    cheapest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """A policy under changed conditions, and whether the objective still holds."""

    change: str
    policy: str
    outcome: PolicyOutcome
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything that the page says. ``rows`` are those that hold the objective by cost, then the
    others by how much they miss; ``recommended`` is the first, or None when none holds.
    """

    question: Question
    job: JobModel
    read: Readings
    as_run: PolicyRow
    rows: tuple[PolicyRow, ...]
    recommended: PolicyRow | None
    bound: HostBound
    shown: Replayed
    what_if: tuple[WhatIf, ...]
    fidelity: tuple[tuple[str, float, float], ...]
    """Of the model fed with recorded load and instances: name, mean as replayed, as recorded."""

    @property
    def best(self) -> PolicyRow:
        """What is recommended, or else comes nearest."""
        return self.rows[0]

    @property
    def most_needed(self) -> int:
        """Instances that the highest load takes when each does the most that was seen."""
        return int(np.ceil(float(self.read.load_per_s.max()) / self.job.most_per_s))


def advise(case: Case, folder: Path, *, master: str | None = "local[*]") -> Answer:
    """Replay every policy, rank and check them below ``folder``, and say what follows.

    Raises GateFailed when the ranking is not sound.
    """
    forget_outcomes(folder)
    with ProcessPoolExecutor(AT_ONCE) as pool:
        measure_recorded(case, folder)
        list(pool.map(partial(measure_policy, case, folder=folder), range(len(case.policies))))
    build_ranking(folder, master=master)
    check_ranking(folder)
    return answer_of(case, folder)


def answer_of(case: Case, folder: Path) -> Answer:
    """What follows from the ranking below ``folder``."""
    policies = {one.name: one for one in case.policies}
    table = [_row(row, policies) for row in read_staged(folder, ADVICE_RANKING)]
    as_run, *rows = table
    best = rows[0]
    assert best.policy is not None
    return Answer(
        question=case.question,
        job=case.job,
        read=case.read,
        as_run=as_run,
        rows=tuple(rows),
        recommended=best if best.holds and not best.guessed else None,
        bound=bound_of(case, case.read.load_per_s),
        shown=replayed(case.job, case.read.load_per_s, seeded(case.question, 1), best.policy),
        what_if=_what_if(case, [row.policy for row in rows[:ASKED_WHAT_IF] if row.policy]),
        fidelity=_fidelity(case.job, case.read),
    )


def _row(row: Mapping[str, Any], policies: Mapping[str, Policy]) -> PolicyRow:
    return PolicyRow(
        policy=policies.get(row["policy"]),
        name=row["policy"],
        holds=row["holds"],
        guessed=row["guessed"],
        cost=row["cost_per_month"],
        lowest_cost=row["lowest_cost"],
        highest_cost=row["highest_cost"],
        regret=row["regret"],
        within=row["share_within"],
        worst_hour=row["worst_hour_share"],
        scalings_a_day=row["scalings_per_day"],
        mean_instances=row["mean_instances"],
        seeds=row["seeds"],
        cheapest=row["share_cheapest"],
    )


def _what_if(case: Case, policies: Sequence[Policy]) -> tuple[WhatIf, ...]:
    """The first policies again, one thing changed at a time, with the recorded load of seed 1."""
    asked = list(product(_changes(case), policies))
    policies_then = [_with_most(one, case.question, changed) for (_, _, changed), one in asked]
    with ProcessPoolExecutor(AT_ONCE) as pool:
        found = pool.map(
            outcome,
            [case.job] * len(asked),
            [factor * case.read.load_per_s for (_, factor, _), _ in asked],
            [question for (_, _, question), _ in asked],
            policies_then,
        )
        return tuple(
            WhatIf(
                change=change,
                policy=tried.name,
                outcome=one,
                holds=one.within >= case.question.objective.share,
            )
            for ((change, _, _), _), tried, one in zip(asked, policies_then, found, strict=True)
        )


def _changes(case: Case) -> Iterable[tuple[str, float, Question]]:
    """What changes, what the load is multiplied by, and what is asked then."""
    question = seeded(case.question, 1)
    given = question.conditions
    slower = replace(given, takes_s=2 * given.takes_s)
    wider = replace(given, max_instances=2 * given.max_instances)
    yield "starts take twice as long", 1.0, replace(question, conditions=slower)
    told = "the load doubles, and so does the most there may be"
    yield told, 2.0, replace(question, conditions=wider)
    yield "prices rise by half", 1.0, _priced(question, 1.5, question.book.btu_s)
    if question.book.btu_s < HOUR_S:
        yield "hosts are billed by whole hours", 1.0, _priced(question, 1.0, HOUR_S)


def _priced(question: Question, factor: float, btu_s: float) -> Question:
    """The question with other prices: controllers are told, and the bill is made by them."""
    book, given = question.book, question.conditions
    more = factor * btu_s / book.btu_s
    changed: PriceBook = replace(book, btu_s=btu_s, price_per_btu=more * book.price_per_btu)
    if isinstance(book, CloudPriceBook) and isinstance(changed, CloudPriceBook):
        cap = None if book.cap_per_month is None else factor * book.cap_per_month
        changed = replace(
            changed,
            minimum_s=ceil(book.minimum_s / btu_s) * btu_s,
            cap_per_month=cap,
            reserved_per_hour=factor * book.reserved_per_hour,
        )
    told_s = max(given.btu_s, btu_s)
    price = factor * given.price_per_btu * told_s / given.btu_s
    return replace(
        question,
        book=changed,
        conditions=replace(given, btu_s=told_s, price_per_btu=price),
    )


def _with_most(policy: Policy, given: Question, changed: Question) -> Policy:
    """The policy with the most instances that there may be then; of a fixed size, with twice."""
    if policy.at_start and changed.conditions.max_instances > given.conditions.max_instances:
        return fixed(policy.at_start * 2)
    if policy.options.get(CAPPED) != given.conditions.max_instances:
        return policy
    return replace(policy, options={**policy.options, CAPPED: changed.conditions.max_instances})


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
