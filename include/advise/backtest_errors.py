"""The table of backtest errors: recordings of one job, all against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictInt, TypeAdapter, ValidationError

from include.advise.backtest import SEEDS, Scaler, reading_of, replays_of, share_within
from include.advise.candidates import policy
from include.advise.case import read_book
from include.advise.job import JobModel, fit
from include.advise.margins import BacktestError, scaler_kind
from include.advise.objective import LatencyObjective
from include.advise.recorded import Recorded, read_recorded, with_operators
from include.advise.request import MOST_INSTANCES, PER_SECOND
from include.experiment.prices import is_file
from include.files.plain_yaml import input_yaml
from include.model.errors import SpecError, all_checked
from include.workloads.topologies import complaint

LIMITS_OVER_REST = (1.5, 2.0, 3.0, 5.0, 10.0)
"""Limits over the latency at rest: how far off shares are depends on how near to it a limit is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledRecording:
    """A recording of a job, and what scaled it."""

    recorded: Recorded
    job: str
    scaler: Scaler


HOW_TO_LIST = "write - {recording: a.csv, job: NAME, controller: hpa, options: {target_cpu: 0.35}}"


class _Entry(BaseModel):
    """A recording as the file names it; a path is relative to the file."""

    model_config = ConfigDict(extra="forbid")
    recording: Annotated[str, Field(min_length=1)]
    job: Annotated[str, Field(min_length=1)]
    controller: str
    options: dict[str, Any] = {}
    prices: str = PER_SECOND
    per_host: Annotated[StrictInt, Field(ge=1, le=MOST_INSTANCES)] | None = None
    columns: str = ""
    edges: str = ""


def read_scaled(path: Path) -> list[ScaledRecording]:
    """The recordings that a YAML list names. Raises SpecError with everything that is wrong."""
    try:
        raw = input_yaml(path, "list of recordings")
        entries = TypeAdapter(list[_Entry]).validate_python(raw)
    except ValidationError as error:
        problems = [
            complaint(item, ", ".join(_parts(item["loc"])))
            for item in error.errors(include_url=False)
        ]
        raise SpecError(path.name, [*problems, HOW_TO_LIST]) from None
    if not entries:
        raise SpecError(path.name, ["names no recording", HOW_TO_LIST])
    return all_checked(path.name, *(partial(_scaled, path.parent, entry) for entry in entries))


def _parts(place: Sequence[int | str]) -> list[str]:
    """Where in the list something is; entries count from 1."""
    first, *rest = place or ("the file",)
    return [f"entry {first + 1}" if isinstance(first, int) else first, *map(str, rest)]


def _scaled(folder: Path, entry: _Entry) -> ScaledRecording:
    """The recording of an entry. Raises SpecError with everything that is wrong with the entry."""

    def beside(name: str) -> str:
        return str(folder / name) if is_file(name) else name

    def recorded() -> Recorded:
        source, edges = str(folder / entry.recording), beside(entry.edges)
        read = read_recorded(entry.recording, source, entry.columns, edges)
        per_host = entry.per_host or read.job.instances_per_host
        return replace(read, job=replace(read.job, instances_per_host=per_host))

    _, book, recording = all_checked(
        entry.recording,
        lambda: policy(entry.controller, entry.options),
        lambda: read_book(beside(entry.prices)),
        recorded,
    )
    return ScaledRecording(
        recorded=recording,
        job=entry.job,
        scaler=Scaler(entry.controller, entry.options, book),
    )


def backtest_errors(
    recordings: Sequence[ScaledRecording], report: Callable[[str], None] = lambda _: None
) -> tuple[list[BacktestError], list[str]]:
    """The errors of all backtests: every recording of a job against every other one of it, and the
    second half of each against its first; and notes on recordings of which there is no model.
    ``report`` is called with a sentence before each.

    Raises SpecError where there is no backtest, or where ``edges`` are given for operators that
    have no models.
    """
    models, notes = list[tuple[ScaledRecording, JobModel]](), list[str]()
    for scaled in recordings:
        try:
            job = fit(scaled.recorded.job)
        except SpecError as error:
            notes += [f"{error.source} gives no model ({problem})" for problem in error.problems]
            continue
        models.append((scaled, with_operators(job, scaled.recorded)))
    errors = list[BacktestError]()
    for origin, job in models:
        for target in recordings:
            if target is not origin and target.job == origin.job:
                report(f"{target.recorded.job.name} against the model of {job.name}")
                errors += _errors(origin, job, target)
    why_none = [*notes, "there are no two recordings of a job of which one gives a model"]
    for scaled, _ in models:
        first, second = _half(scaled, 0), _half(scaled, 1)
        report(f"the second half of {scaled.recorded.job.name} against its first")
        try:
            job = with_operators(fit(first.recorded.job), first.recorded)
            errors += _errors(first, job, second)
        except SpecError as error:  # mostly it is too short
            why_none += [f"{error.source}: {problem}" for problem in error.problems]
    if not errors:
        raise SpecError("backtest-errors", why_none)
    return errors, notes


def _half(scaled: ScaledRecording, half: int) -> ScaledRecording:
    """The first or the second half, as a recording of its own."""
    whole, operators = scaled.recorded.job, scaled.recorded.operators
    middle_s = whole.times_s[whole.times_s.size // 2]
    job = whole.at((whole.times_s >= middle_s) == bool(half))
    name = f"{job.name}, {('first', 'second')[half]} half"
    job = replace(job, name=name, times_s=job.times_s - half * middle_s)
    if operators is not None:
        recording, edges = operators
        own = recording.at((recording.times_s >= middle_s) == bool(half))
        operators = replace(own, times_s=own.times_s - half * middle_s), edges
    return replace(scaled, recorded=Recorded(job, operators))


def _errors(origin: ScaledRecording, job: JobModel, target: ScaledRecording) -> list[BacktestError]:
    """Of the model ``job`` of one recording, held against another one."""
    fitted, read = origin.recorded.job, target.recorded.job
    runs, readings = replays_of(job, read, target.scaler, SEEDS)
    if np.isnan(job.quiet_latency_s) or np.isnan(readings.latency_s).all():
        problem = "has no latency to hold shares against; map it or leave the recording out"
        name = fitted.name if np.isnan(job.quiet_latency_s) else read.name
        raise SpecError(name, [problem])
    instances = reading_of("instances", readings, np.mean)
    errors = []
    for limit in LIMITS_OVER_REST:
        within = share_within(LatencyObjective(0.95, limit * job.quiet_latency_s), readings)
        errors.append(
            BacktestError(
                fitted=fitted.name,
                fitted_under=_kind(origin),
                against=read.name,
                under=_kind(target),
                limit_over_rest=limit,
                predicted_share=fmean(within(run) for run in runs),
                recorded_share=within(readings),
                predicted_instances=fmean(instances(run) for run in runs),
                recorded_instances=instances(readings),
                by_operator=job.operators_under(target.scaler.controller) is not None,
            )
        )
    return errors


def _kind(scaled: ScaledRecording) -> str:
    return scaler_kind(scaled.scaler.controller, scaled.scaler.options)
