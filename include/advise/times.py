"""How long scalings take: estimates with their intervals, or what to record to have them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.workloads.recordings import Recording
from include.workloads.recordings.recording import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedValue:
    """A value and the interval that 95 % of resampled hours (or shorter parts) give."""

    value: float
    low: float
    high: float

    def __format__(self, form: str) -> str:
        """The value and its interval, each in this form."""
        return f"{self.value:{form}} ({self.low:{form}} to {self.high:{form}})"


LEAST_STARTS = 5
LONGEST_START_S = 1800.0
"""Instances that are not there by then were refused, not slow."""
DRAWS = 1000
UNTOLD = "no recording was read"


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedTime:
    """Seconds with their interval and what they were fitted on (``said``); where a recording
    cannot tell, no value, and ``said`` is what stands in and what to record."""

    value: FittedValue | None = None
    said: str = UNTOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingTimes:
    """From the order of an instance until it is there; and how late records are at most by the
    restart that a scaling is, and by one that no scaling explains. ``asked_restart_s`` is what a
    user said of the former."""

    start_up: EstimatedTime = EstimatedTime()
    by_scaling: EstimatedTime = EstimatedTime()
    by_itself: EstimatedTime = EstimatedTime()
    asked_restart_s: float | None = None

    def named(self) -> tuple[tuple[str, EstimatedTime], ...]:
        """Each with the words that people read."""
        return (
            ("start of an instance", self.start_up),
            ("restart by a scaling", self.by_scaling),
            ("restart by itself", self.by_itself),
        )


def start_up_in(recording: Recording, presumed_s: float) -> EstimatedTime:
    """The mean time from instances that are asked for to as many that are there.

    An order and its instances are both seen by the first reading after them, so the difference of
    the two is right in the mean, however seldom readings come.
    """
    else_s = f"{presumed_s:g} s are assumed"
    wanted = recording.readings.get("desired_instances")
    count = recording.readings.get("instances")
    if wanted is None or count is None:
        note = "the recording does not say when instances were asked for, so their start cannot be"
        how = "record how many are asked for (kube_deployment_spec_replicas, for example), and map"
        return EstimatedTime(said=f"{note} told from it: {else_s}; {how} it (--map desired=COLUMN)")
    measured = ~(np.isnan(wanted) | np.isnan(count))
    times_s = recording.times_s[measured]
    took = _starts(times_s, wanted[measured], count[measured])
    if took.size < LEAST_STARTS:
        note = f"{took.size} scale-ups were recorded that came to their end, {LEAST_STARTS} are"
        return EstimatedTime(said=f"{note} needed: {else_s}; record more of them")
    apart_s = float(np.median(np.diff(times_s)))
    value = around(float(took.mean()), resampled(took), 2 * apart_s / (12 * took.size) ** 0.5)
    note = f"fitted on {took.size} scale-ups: from the reading that asks for more to the one that"
    return EstimatedTime(value=value, said=f"{note} has as many, with readings every {apart_s:g} s")


def _starts(times_s: FloatArray, wanted: FloatArray, count: FloatArray) -> FloatArray:
    """Seconds of every scale-up whose instances came while they were still asked for."""
    took = []
    for at in (np.flatnonzero(np.diff(wanted) > 0) + 1).tolist():
        goal = wanted[at]
        if count[at - 1] >= goal:
            continue
        last = int(np.searchsorted(times_s, times_s[at] + LONGEST_START_S, side="right"))
        there = np.flatnonzero(count[at:last] >= goal)
        given_up = np.flatnonzero(wanted[at:last] < goal)
        if there.size and not (given_up.size and given_up[0] <= there[0]):
            took.append(float(times_s[at + there[0]] - times_s[at]))
    return np.array(took)


def resampled(values: FloatArray) -> FloatArray:
    """The means of `DRAWS` samples of as many rows, drawn with replacement."""
    picked = np.random.default_rng(0).integers(0, len(values), (DRAWS, len(values)))
    means: FloatArray = values[picked].mean(axis=1)
    return means


def around(value: float, draws: FloatArray, at_least: float = 0.0) -> FittedValue:
    """The value, and where 95 % of what was drawn lies; ``at_least`` to each side of it."""
    low, high = np.percentile(draws, [2.5, 97.5])
    return FittedValue(
        value=value,
        low=max(0.0, min(float(low), value - at_least)),
        high=max(float(high), value + at_least),
    )
