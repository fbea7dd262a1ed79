"""Ticks as rows: every action with its reason and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from include.model.cluster import operator_of
from include.model.decision import (
    ACTION_NAMES,
    LeaseHost,
    MigrateInstance,
    Outcome,
    ProlongLease,
    Reasoned,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.runs.loop import Tick
from include.runs.measurements.rows import DecisionRow


def decision_rows(ticks: Iterable[Tick]) -> dict[str, list[Any]]:
    """Columns of the table ``decision``: one row per action, or one that says why to wait."""
    rows = [row for tick in ticks for row in _rows(tick)]
    return {field.name: [getattr(row, field.name) for row in rows] for field in fields(DecisionRow)}


def _rows(tick: Tick) -> Iterable[DecisionRow]:
    now_s = tick.observed.now_s
    if not tick.outcomes:
        why = tick.decided
        yield DecisionRow(now_s, 0, "wait", "", "", "", True, why.reason, why.because, "")
    for step, (decided, outcome) in enumerate(zip(tick.decided.steps, tick.outcomes, strict=True)):
        yield _row(step, decided, outcome, tick)


def _row(step: int, decided: Reasoned, outcome: Outcome, tick: Tick) -> DecisionRow:
    action, subject = outcome.action, outcome.subject
    match action:
        case StartInstance():
            host = action.host
        case StopInstance():
            instance = tick.observed.instances.get(action.instance)
            subject, host = subject or action.instance, instance.host if instance else ""
        case MigrateInstance():
            subject, host = subject or action.instance, action.host
        case LeaseHost():
            host = subject
        case ProlongLease() | ReleaseHost():
            host = subject = action.host
    return DecisionRow(
        tick.observed.now_s,
        step,
        ACTION_NAMES[type(action)],
        operator_of(action, tick.observed),
        subject,
        host,
        outcome.accepted,
        decided.reason,
        decided.because,
        outcome.detail,
    )
