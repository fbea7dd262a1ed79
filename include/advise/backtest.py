"""A model that was fitted to one recording, held against another one of the same job."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from include.advise.candidates import policy
from include.advise.case import DAY_S
from include.advise.job import JobModel
from include.advise.objective import LatencyObjective
from include.advise.operator_replay import setting_under
from include.advise.outcomes import replayed, scalings_of
from include.advise.readings import Readings, averaged, median_of, readings_of
from include.advise.replay import ReplayConditions, Replayed, priced
from include.advise.request import PER_SECOND
from include.experiment.prices import PRICE_BOOKS
from include.model.errors import SpecError
from include.model.host import PriceBook
from include.workloads.recordings import Recording
from include.workloads.recordings.recording import FloatArray

SEEDS = (1, 2, 3)
READINGS = ("instances", "cpu_share", "lag_items", "latency_s")
LEAST_OVERLAP = 0.6
MOST_CPU_ERROR = 0.15
"""Recordings of one job that were at hand have at least 0.94 and at most 0.08 more than the error
of the fit; those of two jobs 0.47 to 0.51, and 0.29 where the model fits its own recording."""
BEHIND_ITEMS = 10_000.0
"""A job of which more records wait is behind."""
LATENCY = LatencyObjective(0.95, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedFigure:
    """A figure as predicted (its mean over seeds, its lowest and highest) and as recorded."""

    name: str
    unit: str
    predicted: float
    low: float
    high: float
    recorded: float

    @property
    def error(self) -> float:
        """Predicted over recorded, less one; NaN where nothing was recorded."""
        return self.predicted / self.recorded - 1 if self.recorded else float("nan")


@dataclass(frozen=True, slots=True)
class Scaler:
    """What scaled a recorded job: a controller with its options, and the prices that it weighed."""

    controller: str
    options: Mapping[str, Any]
    book: PriceBook = PRICE_BOOKS[PER_SECOND]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """What came of it; ``correlation`` is that of the instances over time, by seed."""

    job: JobModel
    rows: tuple[PredictedFigure, ...]
    correlation: tuple[float, ...]


def backtest(
    job: JobModel,
    test: Recording,
    scaler: Scaler,
    seeds: Sequence[int] = SEEDS,
    objective: LatencyObjective = LATENCY,
    behind_items: float = BEHIND_ITEMS,
) -> Backtest:
    """Replay the load of ``test`` on a model that was fitted to another recording.

    Of ``test`` the replay knows the load, the instances at the start and of a host and, where the
    options say nothing, the most that there were. Figures are of means over the time between its
    readings, of the replay as well. Raises SpecError with what is wrong with the recording or the
    options.
    """
    runs, read = replays_of(job, test, scaler, seeds, objective.limit_s)
    return Backtest(
        job=job,
        rows=tuple(_compared(runs, read, objective, behind_items)),
        correlation=tuple(_correlation(run, read) for run in runs),
    )


def replays_of(
    job: JobModel,
    test: Recording,
    scaler: Scaler,
    seeds: Sequence[int],
    latency_limit_s: float = LATENCY.limit_s,
) -> tuple[list[Replayed], Readings]:
    """The load of ``test`` replayed with every seed, and its readings, both at its interval.
    ``latency_limit_s`` is the objective of a scaler that has one."""
    read = readings_of(test)
    measured = np.flatnonzero(~np.isnan(read.instances))
    if measured.size == 0:
        raise SpecError(test.name, ["has no readings of instances to hold the replay against"])
    conditions = ReplayConditions(
        instances_at_start=max(1, round(float(read.instances[measured[0]]))),
        max_instances=_most(scaler.options, read),
        takes_s=job.takes_s,
        instances_per_host=test.instances_per_host or 1,
        latency_limit_s=latency_limit_s,
    )
    conditions = priced(conditions, scaler.book)
    if (graph := job.operators_under(scaler.controller)) is not None:
        graph.require_slots(conditions.max_instances)
    in_setting = partial(setting_under, job, read.load_per_s, conditions)
    made = policy(scaler.controller, scaler.options, conditions, in_setting)
    runs = [replayed(job, read.load_per_s, replace(conditions, seed=seed), made) for seed in seeds]
    steps = round(read.interval_s / read.step_s)
    if steps == 1:
        return runs, read
    return [_at_interval(run, steps) for run in runs], readings_of(test, read.interval_s)


def _at_interval(run: Replayed, steps: int) -> Replayed:
    """The replay as the monitor of the recording would have kept it."""
    means: dict[str, Any] = {name: averaged(getattr(run, name), steps) for name in READINGS}
    return replace(run, **means)


def doubts(job: JobModel, fitted: Recording, test: Recording) -> list[str]:
    """What speaks against two recordings being of one job; ``job`` is fitted to the first.

    The loads: how far the ranges from the 5th to the 95th percentile overlap, as a share of what
    both span. The CPU: how far that of ``test`` is from the model's at the same load per instance,
    against how far that of ``fitted`` is.
    """
    sentences = []
    known, read = readings_of(fitted), readings_of(test)
    (low, high), (seen_low, seen_high) = (
        np.percentile(one.load_per_s, [5, 95]) for one in (known, read)
    )
    spanned = max(high, seen_high) - min(low, seen_low)
    overlap = max(0.0, min(high, seen_high) - max(low, seen_low)) / spanned if spanned else 1.0
    if overlap < LEAST_OVERLAP:
        sentences.append(
            f"the loads overlap by {overlap:.0%} ({low:,.0f} to {high:,.0f} records/s in "
            f"{fitted.name}, {seen_low:,.0f} to {seen_high:,.0f} in {test.name}): is it one job?"
        )
    error = _cpu_error(job, read)
    if error > MOST_CPU_ERROR + _cpu_error(job, known):
        sentences.append(
            f"CPU in {test.name} is {error:.0%} away from what the model has at the same load per "
            f"instance (the median reading): does a record take as much work as in {fitted.name}?"
        )
    return sentences


def _cpu_error(job: JobModel, read: Readings) -> float:
    """How far CPU as recorded is from the model's at the median reading, as a share of that."""
    share = job.cpu_share(read.load_per_s / np.maximum(read.instances, 1.0))
    return median_of(np.abs(read.cpu_share / np.maximum(share, 1e-9) - 1))


def _most(options: Mapping[str, Any], read: Readings) -> int:
    most = options.get("max_instances")
    if isinstance(most, int | float) and float(most).is_integer():
        return int(most)
    return max(1, round(float(np.nanmax(read.instances))))


def _correlation(run: Replayed, read: Readings) -> float:
    measured = ~np.isnan(read.instances)
    if np.ptp(run.instances[measured]) == 0 or np.ptp(read.instances[measured]) == 0:
        return float("nan")
    return float(np.corrcoef(run.instances[measured], read.instances[measured])[0, 1])


def _compared(
    runs: Sequence[Replayed], read: Readings, objective: LatencyObjective, behind_items: float
) -> Iterator[PredictedFigure]:
    """Each figure of the replays and of the recording, where that has readings."""
    days = read.load_per_s.size * read.step_s / DAY_S

    def scalings(one: Replayed | Readings) -> float:
        return scalings_of(one.instances, read.step_s) / days

    within = f"records within {objective.limit_s:g} s"
    behind = f"time with lag above {behind_items:g}"

    def is_behind(lag_items: FloatArray) -> float:
        return float((lag_items > behind_items).mean())

    figures: tuple[tuple[str, str, str, Callable[[Any], float]], ...] = (
        ("mean instances", "", "instances", reading_of("instances", read, np.mean)),
        ("scalings a day", "", "instances", scalings),
        ("median latency", "s", "latency_s", reading_of("latency_s", read, np.median)),
        (within, "share", "latency_s", share_within(objective, read)),
        (behind, "share", "lag_items", reading_of("lag_items", read, is_behind)),
        ("mean CPU", "share", "cpu_share", reading_of("cpu_share", read, np.mean)),
    )
    for name, unit, of, measure in figures:
        is_recorded = not np.isnan(getattr(read, of)).all()
        recorded, *values = (measure(run) if is_recorded else math.nan for run in (read, *runs))
        yield PredictedFigure(
            name=name,
            unit=unit,
            predicted=float(np.mean(values)),
            low=min(values),
            high=max(values),
            recorded=recorded,
        )


def share_within(
    objective: LatencyObjective, read: Readings
) -> Callable[[Replayed | Readings], float]:
    """The share within the limit, of records that came while the recording has a latency."""

    def share(one: Replayed | Readings) -> float:
        latency = np.where(np.isnan(read.latency_s), np.nan, one.latency_s)
        return objective.within(read.load_per_s, latency)

    return share


def reading_of(
    name: str, read: Readings, summed_up: Callable[[FloatArray], Any]
) -> Callable[[Replayed | Readings], float]:
    """A figure of the readings of one name, at the times at which the recording has some."""
    measured = ~np.isnan(getattr(read, name))
    return lambda one: float(summed_up(getattr(one, name)[measured]))
