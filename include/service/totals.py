"""What operators have done since the service began, added up over restarts of the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from include.service.rates import JobRates, OperatorRates, waiting_in_flink
from include.service.reading import JobReading, OperatorReading


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
    """Starts of the same job between two readings. Of several the last counts."""
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
    return Totals(
        operators=operators,
        published=published,
        job=now.job,
        job_started_s=now.started_s,
        subtasks=subtasks,
        job_starts=before.job_starts + (paused_s > 0),
        job_changes=before.job_changes + changed,
        paused_for_changes_s=before.paused_for_changes_s + paused_s * changed,
    )


def _paused_s(before: Totals, now: JobReading) -> float:
    """How long it was down before a start that was not seen before; 0 of any other start."""
    seen = before.job == now.job and before.job_started_s < now.down_s
    return max(0.0, now.started_s - now.down_s) if seen else 0.0


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
