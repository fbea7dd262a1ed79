"""What restarts and scalings do to a job, read off those that were recorded."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np

from include.advise.readings import Flags, Readings, median_of
from include.advise.times import EstimatedTime, ScalingTimes, around, resampled
from include.workloads.recordings.recording import FloatArray

EPISODE_S = 180.0
BEFORE_S = 30.0
"""A restart begins before the first reading that shows it: latency is known of what got out."""
LEAST_SEEN = 5
"""So many scalings, and restarts of their own, a comparison of the two takes."""
PLANNED_RANGE = (0.3, 3.0)
"""What a scaling does of what a restart does by itself, where no recording tells. Chosen: the two
recordings that tell have 0.50 (0.38 to 0.65) and 1.35 (0.84 to 2.03); the ends are wider. Replays
are spread over it (`include.advise.job.drawn`)."""
PLANNED_SHARE = math.sqrt(PLANNED_RANGE[0] * PLANNED_RANGE[1])
"""The middle of it, by ratios."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What a restart does to readings, by step from its beginning: the mean of those recorded.

    ``cpu_excess`` is a share that comes on top, ``lag_s`` the records that wait over the load,
    ``latency_excess_s`` what comes on top of the latency. Empty where none was recorded. A scaling
    does ``planned_share`` of it, within ``planned_range``.
    """

    cpu_excess: tuple[float, ...] = ()
    lag_s: tuple[float, ...] = ()
    latency_excess_s: tuple[float, ...] = ()
    seen: int = 0
    planned_share: float = PLANNED_SHARE
    planned_range: tuple[float, float] = PLANNED_RANGE


def learned(
    read: Readings, own: list[int], changed: Flags, curve: tuple[FloatArray, FloatArray]
) -> tuple[Restart, ScalingTimes, list[str]]:
    """What the restarts at ``own`` and the scalings where instances have ``changed`` tell, how late
    records are by either, and notes; ``curve`` is the usual CPU: rates of an instance and shares.
    """
    scaled = _scalings(read, changed)
    restart, notes = _compared(_mean_of(read, own, *curve), _mean_of(read, scaled, *curve))
    late, planned, share = _late(read, own), _late(read, scaled), restart.planned_share
    by_scaling = _by_scaling(late, planned, share * max(restart.latency_excess_s, default=0.0))
    if (fitted := by_scaling.value) is not None:
        ends = share * fitted.low / fitted.value, share * fitted.high / fitted.value
        restart = replace(restart, planned_range=ends)
    return restart, ScalingTimes(by_scaling=by_scaling, by_itself=_by_itself(late)), notes


def _whole(read: Readings, starts: list[int]) -> list[int]:
    steps = round(EPISODE_S / read.step_s)
    return [start for start in starts if start >= 0 and start + steps <= read.times_s.size]


def _late(read: Readings, starts: list[int]) -> FloatArray:
    """Latency that comes on top, by episode and step; of none where nobody recorded it."""
    rows = np.array(_whole(read, starts), dtype=int)[:, None]
    rows = rows + np.arange(round(EPISODE_S / read.step_s))
    if np.isnan(read.latency_s).all():
        return np.zeros((0, rows.shape[1]))
    late: FloatArray = np.nan_to_num(read.latency_s[rows] - median_of(read.latency_s))
    return late


def _by_itself(late: FloatArray) -> EstimatedTime:
    if len(late) < LEAST_SEEN:
        note = f"{len(late)} restarts that no scaling explains were recorded with their latency"
        return EstimatedTime(said=f"{note}, {LEAST_SEEN} are needed; record for longer")
    peaks = _drawn(late).max(axis=1)
    value = around(float(late.mean(axis=0).max()), peaks)
    return EstimatedTime(value=value, said=f"fitted on {len(late)} that no scaling explains")


def _by_scaling(late: FloatArray, planned: FloatArray, used_s: float) -> EstimatedTime:
    """What the replay uses, where it was read off scalings, with the interval of resampled ones."""
    counts = f"{len(planned)} scalings and {len(late)} restarts by themselves"
    enough = len(planned) >= LEAST_SEEN and (len(late) >= LEAST_SEEN or not len(late))
    if not enough or used_s <= 0 or planned.mean(axis=0).clip(0).sum() <= 0:
        note = f"{counts} were recorded with their latency: {used_s:.2g} s are assumed"
        how = f"record {LEAST_SEEN} scalings, with latency, or give --restart-s"
        return EstimatedTime(said=f"{note}; {how}")
    drawn = _drawn(planned)
    if len(late):
        itself = _drawn(late)
        peaks = drawn.sum(axis=1) / np.maximum(itself.sum(axis=1), 1e-9) * itself.max(axis=1)
    else:
        peaks = drawn.max(axis=1)
    return EstimatedTime(value=around(used_s, peaks), said=f"fitted on {counts}")


def _drawn(late: FloatArray) -> FloatArray:
    """Mean episodes of resampled ones: a row each, not below 0."""
    return np.maximum(0.0, resampled(late))


def timed(restart: Restart, quiet_lag_s: float, step_s: float, restart_s: float) -> Restart:
    """The restart of which a scaling does what keeps records waiting for ``restart_s`` at most.

    Where none was recorded: a pause after which what waited is made up for at the same speed.
    """
    peak_s = max(restart.latency_excess_s, default=0.0)
    if peak_s > 0:
        share = restart_s / peak_s
        return replace(restart, planned_share=share, planned_range=(share, share))
    steps = np.arange(round(max(EPISODE_S, restart_s) / step_s)) * step_s
    late = np.maximum(0.0, restart_s - steps)
    return Restart(
        cpu_excess=(0.0,) * steps.size,
        lag_s=tuple((np.nan_to_num(quiet_lag_s) + late).tolist()),
        latency_excess_s=tuple(late.tolist()),
        planned_share=1.0,
        planned_range=(1.0, 1.0),
    )


def restarts_in(read: Readings) -> list[int]:
    """Where latency, or else lag, leaves what is usual: twice the median."""
    signal = read.latency_s if not np.isnan(read.latency_s).all() else read.lag_items
    if np.isnan(signal).all():
        return []
    factor = 2.0 if signal is read.latency_s else 5.0
    hot = np.nan_to_num(signal, nan=0.0) > factor * float(np.nanmedian(signal))
    apart, back = round(120 / read.step_s), round(BEFORE_S / read.step_s)
    restarts = [
        step for step in np.flatnonzero(hot) if step >= apart and not hot[step - apart : step].any()
    ]
    return [int(step) - back for step in restarts]


def _scalings(read: Readings, changed: Flags) -> list[int]:
    """Where scalings begin that no other one comes shortly before."""
    steps = np.flatnonzero(changed)
    apart = np.diff(steps, prepend=-(10**9)) * read.step_s >= EPISODE_S
    return [int(step) - round(BEFORE_S / read.step_s) for step in steps[apart]]


def _compared(own: Restart, scaling: Restart) -> tuple[Restart, list[str]]:
    """The restart that counts with what a scaling does of it, and notes: latency that comes on top,
    added up over an episode."""
    late_s, planned_s = sum(own.latency_excess_s), sum(scaling.latency_excess_s)
    told = scaling.seen >= LEAST_SEEN and planned_s > 0
    if told and not own.seen:
        note = f"what a scaling does is the mean of {scaling.seen} that were recorded"
        return replace(scaling, planned_share=1.0), [f"{note}; no other restart was"]
    if not own.seen:
        return own, ["no restart was recorded, so scaling costs nothing in the model; record one"]
    mean = f"what a restart does is the mean of {own.seen} that were recorded"
    if told and own.seen >= LEAST_SEEN and late_s > 0:
        share = planned_s / late_s
        note = f"a scaling does {share:.2f} of what a restart does by itself"
        recorded = f"{note} ({scaling.seen} and {own.seen} recorded)"
        return replace(own, planned_share=share), [mean, recorded]
    note = f"fewer than {LEAST_SEEN} scalings, or restarts by themselves, were recorded: that a"
    low, high = PLANNED_RANGE
    assumed = f"{note} scaling does {low:g} to {high:g} times what a restart does is assumed"
    return own, [mean, assumed]


def _mean_of(read: Readings, starts: list[int], rates: FloatArray, shares: FloatArray) -> Restart:
    """The mean of the restarts that begin at these steps."""
    steps, whole = round(EPISODE_S / read.step_s), _whole(read, starts)
    if not whole:
        return Restart()
    rows = np.array(whole)[:, None] + np.arange(steps)
    each = read.load_per_s[rows] / np.maximum(read.instances[rows], 1.0)
    usual = np.interp(each, rates, shares)
    with warnings.catch_warnings():  # of a signal that nobody recorded there is no mean
        warnings.simplefilter("ignore", RuntimeWarning)
        cpu = np.nanmean(read.cpu_share[rows] - usual, axis=0)
        lag = np.nanmean(read.lag_s[rows], axis=0)
        late = np.nanmean(read.latency_s[rows], axis=0) - median_of(read.latency_s)
    return Restart(
        cpu_excess=tuple(np.nan_to_num(cpu).tolist()),
        lag_s=tuple(np.nan_to_num(lag).tolist()),
        latency_excess_s=tuple(np.maximum(0.0, np.nan_to_num(late)).tolist()),
        seen=len(whole),
    )
