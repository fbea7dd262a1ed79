"""Which policy would have run a recorded job at the lowest cost while its objective held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path
from statistics import fmean

import numpy as np

from include.advise.backtest import doubts
from include.advise.bill import HostBound, bound_of
from include.advise.candidates import CAPPED, Policy, fixed
from include.advise.case import (
    AGAINST,
    Case,
    Question,
    keep,
    read_request,
    seeded,
)
from include.advise.job import JobModel
from include.advise.margins import CANNOT_TELL, HOLDS, MISSES, share_range, verdict
from include.advise.outcomes import (
    PolicyOutcome,
    failures,
    measure_policy,
    measure_recorded,
    over_seeds,
    replayed,
)
from include.advise.ranking import HIGHER_LOAD, PolicyRow, build_ranking, money, percent
from include.advise.readings import Readings, median_of
from include.advise.replay import Replayed
from include.advise.request import FIXED, AdviceRequest
from include.files.whole import read_json, write_json
from include.model.billing import CloudPriceBook
from include.model.errors import ControllerFailed, all_checked
from include.model.host import PriceBook
from include.results.tables.catalogue import ADVICE_RANKING
from include.results.tables.staged import read_staged

AT_ONCE = 2
HOUR_S = 3600.0
PAPER_UNITS = "cost units"
"""What a book without a currency counts in: the unit of the papers."""
ASKED_WHAT_IF = 3
"""So many of the first policies are tried under other conditions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """A policy under changed conditions: means over the seeds of the ranking, and whether the
    objective still holds (yes, no or cannot tell)."""

    change: str
    policy: str
    cost: float
    within: float
    holds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything that the page says. ``rows`` are those that hold the objective by cost, then those
    of which it cannot be told, then the others by how much they miss; ``recommended`` is the first,
    or None when none is known to hold it. ``idle`` are left out of ``rows``: they kept the
    instances they started with throughout.
    """

    case: Case
    as_run: PolicyRow
    rows: tuple[PolicyRow, ...]
    idle: tuple[PolicyRow, ...]
    recommended: PolicyRow | None
    policy: Policy
    """That of the first row."""
    bound: HostBound
    shown: Replayed
    what_if: tuple[WhatIf, ...]
    fidelity: tuple[tuple[str, float, float], ...]
    """Of the model fed with recorded load and instances: name, mean as replayed, as recorded; and
    the share within the limit of the recorded policy, where that is known. NaN: not recorded."""
    against: tuple[str, ...] = ()
    """What a second recording of the job says against it."""
    failed: tuple[str, ...] = ()
    """Of each policy whose controller raised something that it is not ranked, and why."""

    @property
    def currency(self) -> str:
        """In what the book counts."""
        book = self.case.question.book
        return book.currency if isinstance(book, CloudPriceBook) else PAPER_UNITS

    @property
    def trade(self) -> str:
        """What the first policy costs and holds beside the job as it was run; where the job was run
        under it, what its range does not know."""
        now, best, limit = self.as_run, self.best, f"{self.case.question.objective.limit_s:g} s"
        if self.case.recorded and best.policy == self.case.recorded.name:
            return (
                f"The job was recorded under {best.policy}: its range lies between the replay and "
                "this recording, and other days may be outside it."
            )
        more = best.cost_per_month - now.cost_per_month
        share = more / now.cost_per_month
        return (
            f"As it was run the job costs {money(now.cost_per_month)} {self.currency} a month, "
            f"with {percent(now.share_within)} of the records within {limit}; {best.policy} costs "
            f"{money(best.cost_per_month)} ({money(more, '+')}, {100 * share:+.1f} %), with "
            f"{percent(best.share_within)} ({best.share_span})."
        )

    @property
    def seeds_disagree(self) -> str:
        """What to do when not all seeds agree on the cheapest policy; empty where they do."""
        best = self.recommended
        others = [row for row in (*self.rows, *self.idle) if row.share_cheapest and row is not best]
        if best is None or not others:
            return ""
        rivals = "; ".join(
            f"{row.policy} ({100 * (row.cost_per_month / best.cost_per_month - 1):+.1f} %)"
            for row in others
        )
        advice = "choose by scalings and worst hour, or ask again with more seeds"
        return f"With other seeds the cheapest is {rivals}: {advice}."

    @property
    def untold(self) -> str:
        """The first policy that may hold the objective for less, and what would tell; empty
        where there is none."""
        best, goal = self.recommended, self.case.question.objective
        for row in self.rows:
            dear = best is not None and row.cost_per_month >= best.cost_per_month
            if row.holds != CANNOT_TELL or row.share_within < goal.share or dear or row.guessed:
                continue
            load = f"{self.case.job.known_to_per_s:,.0f} records/s"
            more = f" (above {load}), such as with fewer of them" * (row.to_record == HIGHER_LOAD)
            return (
                f"{row.policy} may hold {goal} at {money(row.cost_per_month)} {self.currency} a "
                f"month ({money(row.lowest_cost)} to {money(row.highest_cost)}), which cannot be "
                f"told from this recording: record {row.to_record}{more}."
            )
        return ""

    @property
    def slow_at_rest(self) -> str:
        """What to do where the limit is shorter than what the job takes with no load to speak of;
        empty elsewhere."""
        rest_s, limit_s = self.case.job.quiet_latency_s, self.case.question.objective.limit_s
        if not rest_s > limit_s:
            return ""
        return (
            f"The job takes {rest_s:.4g} s at rest, so no number of instances brings records "
            f"within {limit_s:g} s: ask for a longer limit, or check the unit of the latency."
        )

    @property
    def idle_policies(self) -> str:
        """Which policies never scaled, and what they come to; empty where every one did."""
        if not self.idle:
            return ""
        first, count = self.idle[0], len(self.idle)
        names = "; ".join(f"{row.policy}{'*' * row.guessed}" for row in self.idle)
        at_start = self.case.question.conditions.instances_at_start
        words = {HOLDS: "holds", MISSES: "misses", CANNOT_TELL: "may hold"}
        held = f"{words[first.holds]} the objective at {money(first.cost_per_month)}"
        return (
            f"{count} {'policy' if count == 1 else 'policies'} never scaled ({names}), but kept "
            f"{at_start} instances from beginning to end, which {held} {self.currency} a month."
        )

    @property
    def without_margins(self) -> str:
        """Of which policies nothing was held against a real run, and what would be; empty where
        there are none."""
        case = self.case
        names = [
            policy.name
            for policy in case.policies
            if policy != case.recorded and not case.margin(policy).backtests
        ]
        if not names:
            return ""
        return (
            f"No margins for {', '.join(names)}: no replay of it was held against a real run, so "
            "whether it holds the objective cannot be told. Margins come from recordings of your "
            "job under it: tidebench backtest-errors, and --errors."
        )

    @property
    def best(self) -> PolicyRow:
        """What is recommended, or else comes nearest."""
        return self.rows[0]

    @property
    def too_few(self) -> str:
        """What to do where the highest load takes more instances than there may be, when each does
        the most that was seen; empty elsewhere."""
        needed = ceil(float(self.case.read.load_per_s.max()) / self.case.job.most_per_s)
        most = self.case.question.conditions.max_instances
        needs = f"At its highest the load needs {needed} instances, and there may be {most}: "
        return f"{needs}allow more (--max-instances)." if needed > most else ""

    @property
    def sentences(self) -> list[str]:
        """What is said of the recommendation before the ranking."""
        sentences = (
            *(self.slow_at_rest, self.trade, *self.against, *self.failed),
            *(self.untold, self.too_few, self.seeds_disagree),
        )
        return [sentence for sentence in sentences if sentence]

    @property
    def notes(self) -> list[str]:
        """What is said below the ranking."""
        notes = [text for text in (self.idle_policies, self.without_margins) if text]
        if any(row.guessed for row in (*self.rows, *self.idle)):
            why = "decides by busy time or CPU, and the recording has the other"
            notes.append(f"* {why}, so it is never recommended.")
        return notes


def advise(case: Case, folder: Path, report: Callable[[str], None] = lambda _: None) -> Answer:
    """Replay every policy, rank and check them below ``folder``, and say what follows.

    ``report`` is called with a sentence at each step that is done. A policy whose controller fails
    is left out. Raises GateFailed when the ranking is not sound, or all controllers fail.
    """
    measure_recorded(case, folder)
    with ProcessPoolExecutor(AT_ONCE) as pool:
        positions = range(len(case.policies))
        replays = [pool.submit(measure_policy, case, each, folder) for each in positions]
        for policy, replay in zip(case.policies, replays, strict=True):
            try:
                replay.result()
                report(f"replayed {policy.name}")
            except ControllerFailed as error:
                report(f"not ranked: {error}")
            except BaseException:
                pool.shutdown(cancel_futures=True)  # a full disk is told now, not after all of them
                raise
    build_ranking(folder)
    return answer_of(case, folder, report)


def answer_of(case: Case, folder: Path, report: Callable[[str], None] = lambda _: None) -> Answer:
    """What follows from the ranking below ``folder``; ``report`` is called as by :func:`advise`."""
    failed = failures(folder)
    kept = tuple(policy for policy in case.policies if policy.name not in failed)
    recorded = None if case.recorded and case.recorded.name in failed else case.recorded
    case = replace(case, policies=kept, recorded=recorded)
    as_run, *rows = [PolicyRow(**row) for row in read_staged(folder, ADVICE_RANKING)]
    idle = idle_rows(rows, case.question.conditions.instances_at_start)
    rows = [row for row in rows if row not in idle]
    best = rows[0]
    policies = {policy.name: policy for policy in case.policies}
    report("ranked, before other loads, starts and prices are tried on the first of them:")
    for row in (as_run, *rows[:ASKED_WHAT_IF]):
        share = f"{100 * row.share_within:.2f} % within the limit"
        report(f"  {row.policy}: {row.cost_per_month:,.2f} a month, {share}, holds: {row.holds}")
    first = seeded(case.question, 1).conditions
    return Answer(
        case=case,
        as_run=as_run,
        rows=tuple(rows),
        idle=tuple(idle),
        recommended=best if best.holds == HOLDS and not best.guessed else None,
        policy=policies[best.policy],
        bound=bound_of(case, case.read.load_per_s),
        shown=replayed(case.job, case.read.load_per_s, first, policies[best.policy]),
        what_if=what_if(case, rows[:ASKED_WHAT_IF], report),
        fidelity=(*_fidelity(case.job, case.read), *share_of_recorded(case, as_run)),
        against=tuple(read_json(against)) if (against := folder / AGAINST).is_file() else (),
        failed=tuple(f"Not ranked: {why}." for why in failed.values()),
    )


def idle_rows(rows: Sequence[PolicyRow], at_start: int) -> list[PolicyRow]:
    """Policies whose replays are those of the fixed size they start from, but not the first row."""
    idle = [
        row
        for row in rows[1:]
        if row.controller != FIXED and row.scalings_per_day == 0 and row.mean_instances == at_start
    ]
    return [
        row
        for row in idle
        if row.holds == idle[0].holds
        and row.cost_per_month == idle[0].cost_per_month  # hosts may still have been moved
    ]


def what_if(
    case: Case, rows: Sequence[PolicyRow], report: Callable[[str], None] = lambda _: None
) -> tuple[WhatIf, ...]:
    """The policies of the rows again, one thing changed at a time, with every seed of the
    ranking."""
    policies = {policy.name: policy for policy in case.policies}
    seeds, answers = case.question.seeds, list[WhatIf]()
    with ProcessPoolExecutor(AT_ONCE) as pool:
        trials = [
            (change, changed, row, policy, pool.submit(over_seeds, case, changed, policy, factor))
            for (change, factor, changed), row in product(_changes(case.question), rows)
            for policy in [_with_most(policies[row.policy], case.question, changed)]
        ]
        for change, changed, row, policy, replays in trials:
            try:
                by_seed = replays.result()
            except ControllerFailed as error:
                report(f"not tried: {error}")
                continue
            answer = WhatIf(
                change=change,
                policy=policy.name,
                cost=fmean(run.cost_per_month for run in by_seed),
                within=fmean(run.share_within for run in by_seed),
                holds=_holds(case, changed, row, policy, by_seed),
            )
            answers.append(answer)
            count = f"{seeds * len(answers)} of {seeds * len(trials)} replays"
            report(f"tried {policy.name}: {change} ({count})")
    return tuple(answers)


def _holds(
    case: Case, changed: Question, row: PolicyRow, policy: Policy, by_seed: Sequence[PolicyOutcome]
) -> str:
    """Whether the objective holds then: as in the ranking where only prices change and the policy
    does the same as without the change."""
    asked, conditions = case.question.conditions, changed.conditions
    prices_only = asked == replace(conditions, btu_s=asked.btu_s, price_per_btu=asked.price_per_btu)
    ranked = row.share_within, row.mean_instances, row.scalings_per_day
    replays = [(run.share_within, run.mean_instances, run.scalings_per_day) for run in by_seed]
    if prices_only and np.allclose(np.mean(replays, axis=0), ranked, rtol=1e-9):
        return row.holds
    range_of_share = share_range(
        [run.known_share for run in by_seed],
        [run.possible_share for run in by_seed],
        case.margin(policy).share,
    )
    return verdict(case.question.objective.share, *range_of_share)


def _changes(question: Question) -> Iterable[tuple[str, float, Question]]:
    """What changes, what the load is multiplied by, and what is asked then."""
    conditions = question.conditions
    slower = replace(conditions, takes_s=2 * conditions.takes_s)
    wider = replace(conditions, max_instances=2 * conditions.max_instances)
    yield "starts take twice as long", 1.0, replace(question, conditions=slower)
    change = "the load doubles, and so does the most there may be"
    yield change, 2.0, replace(question, conditions=wider)
    yield "prices rise by half", 1.0, _priced(question, 1.5, question.book.btu_s)
    if question.book.btu_s < HOUR_S:
        yield "hosts are billed by whole hours", 1.0, _priced(question, 1.0, HOUR_S)


def _priced(question: Question, factor: float, btu_s: float) -> Question:
    """The question with other prices: controllers are told, and the bill is made by them."""
    book, conditions = question.book, question.conditions
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
    billed_s = max(conditions.btu_s, btu_s)
    price = factor * conditions.price_per_btu * billed_s / conditions.btu_s
    return replace(
        question,
        book=changed,
        conditions=replace(conditions, btu_s=billed_s, price_per_btu=price),
    )


def _with_most(policy: Policy, question: Question, changed: Question) -> Policy:
    """The policy with the most instances that there may be then; of a fixed size, with twice."""
    if policy.at_start and changed.conditions.max_instances > question.conditions.max_instances:
        return fixed(policy.at_start * 2)
    if policy.options.get(CAPPED) != question.conditions.max_instances:
        return policy
    return replace(policy, options={**policy.options, CAPPED: changed.conditions.max_instances})


def _fidelity(job: JobModel, read: Readings) -> tuple[tuple[str, float, float], ...]:
    """Load and instances as recorded, through the model: what it gives back."""
    each = read.load_per_s / np.maximum(read.instances, 1.0)
    cpu = job.cpu_share(np.nan_to_num(each))
    measured = ~np.isnan(read.cpu_share) & ~np.isnan(each)
    return (
        ("mean CPU", float(cpu[measured].mean()), float(read.cpu_share[measured].mean())),
        ("median latency, s", job.quiet_latency_s, median_of(read.latency_s)),
        (
            "median of the records that wait",
            float(np.median(read.load_per_s * job.quiet_lag_s)),
            median_of(read.lag_items),
        ),
    )


def share_of_recorded(case: Case, as_run: PolicyRow) -> Iterable[tuple[str, float, float]]:
    """The share within the limit of the policy that the job was recorded under: replayed (the mean
    over the seeds), and recorded."""
    policy, question = case.recorded, case.question
    if policy is not None:
        replays = over_seeds(case, question, policy)
        name = f"share within {question.objective.limit_s:g} s, {policy.name}"
        yield name, fmean(one.share_within for one in replays), as_run.share_within


def advise_beside(
    request: AdviceRequest,
    other: str,
    folder: Path,
    report: Callable[[str], None] = lambda _: None,
) -> Answer:
    """The answer for the recording of the request, with what the recording ``other`` says against
    it; the answer for that is kept in ``folder/beside``.

    ``report`` is called as by `advise`. Raises SpecError with what is wrong with either recording
    before anything is replayed.
    """
    asked = (request, folder), (replace(request, recording=other, recorded=""), folder / "beside")
    reads = all_checked("advise", *(partial(read_request, *each) for each in asked))
    case, second = (keep(read, place) for read, (_, place) in zip(reads, asked, strict=True))
    answer = advise(case, folder, report)
    against = advise(second, folder / "beside", report)
    doubted = doubts(case.job, *(read.recorded.job for read in reads))
    against_answer = (*doubted, *contradictions(answer, against))
    write_json(folder / AGAINST, against_answer)
    return replace(answer, against=against_answer)


def contradictions(answer: Answer, other: Answer) -> list[str]:
    """A sentence for every policy that holds the objective by one recording, misses it by the
    other."""
    names = answer.case.job.name, other.case.job.name
    others = {row.policy: row for row in (*other.rows, *other.idle)}
    sentences = []
    for row in (*answer.rows, *answer.idle):
        pair = [row, others.get(row.policy, row)]
        if {policy.holds for policy in pair} != {HOLDS, MISSES}:
            continue
        says = " and ".join(
            f"{_share(policy)} in {name}" for policy, name in zip(pair, names, strict=True)
        )
        sentences.append(
            f"The two recordings say the opposite of {row.policy}: {says}. Follow neither before "
            "tidebench backtest has told which of them predicts the other."
        )
    return sentences


def _share(row: PolicyRow) -> str:
    verb = "holds" if row.holds == HOLDS else "misses"
    return f"it {verb} the objective ({row.share_span})"
