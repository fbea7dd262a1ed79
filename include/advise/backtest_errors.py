"""The table of backtest errors: recordings of one job, all against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from include.advise.backtest import SEEDS, reading_of, replays_of, share_within
from include.advise.candidates import policy
from include.advise.job import fit
from include.advise.margins import BacktestError, scaler_kind
from include.advise.objective import LatencyObjective
from include.advise.replay import ReplayConditions
from include.files.plain_yaml import input_yaml
from include.model.errors import SpecError
from include.workloads.recordings import Recording, parse_mapping, read_recording
from include.workloads.topologies import validation_problems

_ANY = ReplayConditions(instances_at_start=1, max_instances=1)
LIMITS_OVER_REST = (1.5, 2.0, 3.0, 5.0, 10.0)
"""Limits over the latency at rest: how far off shares are depends on how near to it a limit is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledRecording:
    """A recording of a job, and the controller with its options that scaled it."""

    recording: Recording
    job: str
    controller: str
    options: Mapping[str, Any]


class _Entry(BaseModel):
    """A recording as the file names it; a path is relative to the file."""

    model_config = ConfigDict(extra="forbid")
    recording: Annotated[str, Field(min_length=1)]
    job: Annotated[str, Field(min_length=1)]
    controller: str
    options: dict[str, Any] = {}
    columns: str = ""


def read_scaled(path: Path) -> list[ScaledRecording]:
    """The recordings that a YAML list names. Raises SpecError with everything that is wrong."""
    try:
        raw = input_yaml(path, "list of recordings")
        entries = TypeAdapter(list[_Entry]).validate_python(raw)
    except ValidationError as error:
        how = "write - {recording: a.csv, job: NAME, controller: hpa, options: {target_cpu: 0.35}}"
        raise SpecError(path.name, [*validation_problems(error), how]) from None
    recordings, problems = [], list[str]()
    for entry in entries:
        try:
            policy(entry.controller, entry.options, _ANY)
            mapping = parse_mapping(entry.columns) if entry.columns else {}
            recording = read_recording(str(path.parent / entry.recording), mapping)
            recordings.append(
                ScaledRecording(
                    recording=recording,
                    job=entry.job,
                    controller=entry.controller,
                    options=entry.options,
                )
            )
        except SpecError as error:
            problems += [f"{error.source}: {one}" for one in error.problems]
    if problems:
        raise SpecError(path.name, problems)
    return recordings


def backtest_errors(recordings: Sequence[ScaledRecording]) -> list[BacktestError]:
    """The errors of all backtests: every recording of a job against every other one of it, and the
    second half of each against its first."""
    pairs = [
        (origin, target)
        for origin in recordings
        for target in recordings
        if origin is not target and origin.job == target.job
    ]
    pairs += [(_half(one, 0), _half(one, 1)) for one in recordings]
    return [error for origin, target in pairs for error in _errors_between(origin, target)]


def _half(scaled: ScaledRecording, half: int) -> ScaledRecording:
    """The first or the second half, as a recording of its own."""
    whole, place = scaled.recording, scaled.recording.times_s.size // 2
    rows = slice(place, None) if half else slice(None, place)
    times_s = whole.times_s[rows]
    part = replace(
        whole,
        name=f"{whole.name}, {('first', 'second')[half]} half",
        times_s=times_s - times_s[0],
        readings={name: values[rows] for name, values in whole.readings.items()},
    )
    return replace(scaled, recording=part)


def _errors_between(origin: ScaledRecording, target: ScaledRecording) -> Iterator[BacktestError]:
    job = fit(origin.recording)
    runs, read = replays_of(job, target.recording, target.controller, target.options, SEEDS)
    instances = reading_of("instances", read, np.mean)
    for limit in LIMITS_OVER_REST:
        within = share_within(LatencyObjective(0.95, limit * job.quiet_latency_s), read)
        yield BacktestError(
            fitted=origin.recording.name,
            fitted_under=scaler_kind(origin.controller),
            against=target.recording.name,
            under=scaler_kind(target.controller),
            limit_over_rest=limit,
            predicted_share=fmean(within(run) for run in runs),
            recorded_share=within(read),
            predicted_instances=fmean(instances(run) for run in runs),
            recorded_instances=instances(read),
        )
