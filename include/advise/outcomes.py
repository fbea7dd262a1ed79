"""What a policy does over a recorded load: one row per replay, as the ranking reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from include.advise.bill import bound_of, cost_of
from include.advise.candidates import Policy, under
from include.advise.case import DAY_S, Case, Question, load_of, seeded
from include.advise.cluster import leases_of
from include.advise.job import JobModel, drawn
from include.advise.margins import Margin
from include.advise.operator_replay import replay_operators
from include.advise.readings import (
    Readings,
    averaged,
    dip_steps,
    held_counts,
    lasting_changes,
    lasting_counts,
)
from include.advise.replay import ReplayConditions, Replayed, replay
from include.controllers.failures import error_line, is_ctrl_c
from include.files.whole import read_json, write_json
from include.model.errors import ControllerFailed, StoreError
from include.workloads.recordings.recording import FloatArray

AS_RUN = "as it was run"
QUIET_S = 60.0
"""What is asked for within it takes one restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """One policy over one load: cost of a month, share within the limit, and how it went.

    ``known_share`` and ``possible_share`` are within the limit if all or none of the records is
    late that comes at a load of an instance of which nothing was recorded.
    """

    cost_per_month: float
    share_within: float
    known_share: float
    possible_share: float
    worst_hour_share: float
    scalings_per_day: float
    mean_instances: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutcome(PolicyOutcome):
    """One replay of a policy over a recorded load, or what was recorded (``as_run``).

    ``guessed`` says that the policy decides by something that was not recorded.
    ``position`` says how early the policy was tried. Costs are of a month, ``bound_cost`` is that
    of the bound over the same recording, and ``asked_share`` the share of the objective.
    ``share_margin`` and ``cost_margin`` say how far off such a prediction may be.
    """

    position: int
    policy: str
    controller: str
    as_run: bool
    guessed: bool
    seed: int
    asked_share: float
    share_margin: float
    cost_margin: float
    bound_cost: float


def measure_policy(case: Case, position: int, folder: Path) -> Path:
    """Replay the policy at ``position`` with every seed; write its rows, and return the file.

    Raises ControllerFailed when its controller fails; the file has why, for `failures`.
    """
    policy = case.policies[position]
    try:
        outcomes, margin = over_seeds(case, case.question, policy), case.margin(policy)
    except ControllerFailed as error:
        _write(folder, position + 1, {policy.name: str(error)})
        raise
    if case.recorded is not None and policy.name == case.recorded.name:
        outcomes, margin = _beside_recorded(outcomes, recorded_outcome(case.read, case.question))
    rows = [
        _row(case, position + 1, policy, seed, one, margin) for seed, one in enumerate(outcomes, 1)
    ]
    return _write(folder, position + 1, rows)


def over_seeds(
    case: Case, question: Question, policy: Policy, load_factor: float = 1.0
) -> list[PolicyOutcome]:
    """A replay of the policy with every seed, of so many times the recorded load."""
    return [
        outcome(case.job, load_factor * load_of(case.read, seed), seeded(question, seed), policy)
        for seed in range(1, question.seeds + 1)
    ]


def _beside_recorded(
    outcomes: Sequence[PolicyOutcome], as_run: PolicyOutcome
) -> tuple[list[PolicyOutcome], Margin]:
    """Replays of the policy that was recorded itself: the share is between theirs and what was
    recorded, and how far off its cost is, is known."""
    off = as_run.cost_per_month / fmean(one.cost_per_month for one in outcomes) - 1
    between = [
        replace(
            one,
            known_share=min(one.share_within, as_run.share_within),
            possible_share=max(one.share_within, as_run.share_within),
        )
        for one in outcomes
    ]
    return between, Margin(cost=abs(off))


def measure_recorded(case: Case, folder: Path) -> None:
    """Write what the recording says of itself as position 0, the first rows of a request."""
    outcome = recorded_outcome(case.read, case.question)
    _write(folder, 0, [_row(case, 0, Policy(AS_RUN, ""), 0, outcome, Margin())])


def read_outcomes(folder: Path) -> list[ReplayOutcome]:
    """The replays of every policy that is ranked. Raises StoreError, naming it, when a file is
    missing or torn."""
    kept = _measured(folder)
    if not kept:
        raise StoreError(f"{folder} has no replays; ask for the advice again")
    try:
        return [ReplayOutcome(**row) for rows in kept if isinstance(rows, list) for row in rows]
    except TypeError as error:
        raise StoreError(
            f"{folder}/measurements is of another version ({error}); ask for the advice again"
        ) from error


def require_replayed(case: Case, folder: Path) -> None:
    """Raise StoreError where a policy of the case was not replayed."""
    left = [
        policy.name
        for position, policy in enumerate(case.policies, start=1)
        if not (folder / "measurements" / f"{position:03d}.json").is_file()
    ]
    if left:
        raise StoreError(f"{', '.join(left)}: not replayed; ask for the advice again")


def failures(folder: Path) -> dict[str, str]:
    """By policy why it is not ranked: how its controller has failed."""
    failed: dict[str, str] = {}
    for kept in _measured(folder):
        failed |= kept if isinstance(kept, dict) else {}
    return failed


def _measured(folder: Path) -> list[Any]:
    return [read_json(path) for path in sorted((folder / "measurements").glob("*.json"))]


def _row(
    case: Case, position: int, policy: Policy, seed: int, outcome: PolicyOutcome, margin: Margin
) -> dict[str, Any]:
    row = ReplayOutcome(
        position=position,
        policy=policy.name,
        controller=policy.controller,
        as_run=position == 0,
        guessed=policy.guessed,
        seed=seed,
        **asdict(outcome),
        asked_share=case.question.objective.share,
        share_margin=margin.share,
        cost_margin=margin.cost,
        bound_cost=bound_of(case, load_of(case.read, max(1, seed))).cost,
    )
    return asdict(row)


def _write(folder: Path, position: int, kept: object) -> Path:
    path = folder / "measurements" / f"{position:03d}.json"
    write_json(path, kept)
    return path


def outcome(job: JobModel, load: FloatArray, question: Question, policy: Policy) -> PolicyOutcome:
    """One replay, summed up."""
    run = replayed(job, load, question.conditions, policy)
    figures = outcome_of(run, load, job.step_s, question)
    if figures.scalings_per_day and not job.restart.latency_excess_s:
        # what a scaling does is unknown
        return replace(figures, known_share=0.0, possible_share=1.0)
    beyond = job.is_beyond(load, run.instances) if run.beyond is None else run.beyond
    known, possible = question.objective.between(load, run.latency_s, beyond)
    return replace(figures, known_share=known, possible_share=possible)


def replayed(
    job: JobModel, load: FloatArray, conditions: ReplayConditions, policy: Policy
) -> Replayed:
    """One replay, of every operator where they were recorded and the policy decides on each; one
    that begins with a number of its own gets it."""
    start = policy.at_start or conditions.instances_at_start
    conditions = replace(conditions, instances_at_start=start)
    conditions = under(policy, conditions, job.times.asked_restart_s)
    job = drawn(job, conditions.seed)
    try:
        if (operators := job.operators_under(policy.controller)) is not None:
            return replay_operators(job, operators, load, conditions, policy.build)
        return replay(job, load, conditions, policy.build)
    except KeyboardInterrupt as error:
        if is_ctrl_c(error):
            raise
        raise ControllerFailed(f"{policy.name} failed: {error_line(error)}") from error


def outcome_of(run: Replayed, load: FloatArray, step_s: float, question: Question) -> PolicyOutcome:
    """What a replay cost, and how it held the objective."""
    days, share = load.size * step_s / DAY_S, question.objective.within(load, run.latency_s)
    return PolicyOutcome(
        cost_per_month=cost_of(run.leases, question.book, load.size * step_s, step_s),
        share_within=share,
        known_share=share,
        possible_share=share,
        worst_hour_share=_worst_hour(load, run.latency_s, step_s, question),
        scalings_per_day=scalings_of(
            run.instances if run.by_operator is None else run.by_operator, step_s, lasting=False
        )
        / days,
        mean_instances=float(np.nanmean(run.instances)),
    )


def _worst_hour(load: FloatArray, latency: FloatArray, step_s: float, question: Question) -> float:
    """The lowest share within the limit of any whole hour."""
    per_hour = round(3600 / step_s)
    hours = range(0, max(1, load.size - per_hour + 1), per_hour)
    return min(
        question.objective.within(load[at : at + per_hour], latency[at : at + per_hour])
        for at in hours
    )


def recorded_outcome(read: Readings, question: Question) -> PolicyOutcome:
    """What the recording says of itself; hosts are given back in the reverse order.

    Instances that are away for a moment have kept their hosts: no cloud bills them as new leases.
    Nor is that a scaling: a restart looks the same.
    """
    counts = held_counts(read.instances)
    lasting = np.fmax(counts, lasting_counts(counts, read.dip_steps))
    leases = leases_of(np.ceil(lasting / question.conditions.instances_per_host), read.step_s)
    run = Replayed(
        instances=counts,
        cpu_share=read.cpu_share,
        lag_items=read.lag_items,
        latency_s=read.latency_s,
        leases=tuple(leases),
    )
    figures = outcome_of(run, read.load_per_s, read.step_s, question)
    steps = round(read.interval_s / read.step_s)
    days = read.load_per_s.size * read.step_s / DAY_S
    scalings = scalings_of(averaged(counts, steps), read.interval_s)
    return replace(figures, scalings_per_day=scalings / days)


def scalings_of(instances: FloatArray, step_s: float, *, lasting: bool = True) -> int:
    """Changes of the count, or of any of several by operator, that last, or all; those within a
    minute of each other are one, and so are those of two steps on end: a mean over a step shows one
    that begins within it in both. A job that is away while it is deployed has kept its count."""
    dip = dip_steps(step_s, step_s) if lasting else 0
    changed = [
        lasting_changes(held_counts(np.where(counts > 0, counts, np.nan)), dip)
        for counts in np.atleast_2d(instances)
    ]
    changes = np.flatnonzero(np.any(changed, axis=0))
    return int(changes.size and 1 + (np.diff(changes) * step_s >= max(QUIET_S, 2 * step_s)).sum())
