"""A recording in equal steps, as the model of a job takes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from include.model.errors import SpecError
from include.workloads.recordings import Recording, evenly, filled
from include.workloads.recordings.mapping import listed_names
from include.workloads.recordings.recording import FloatArray

Flags = NDArray[np.bool_]
STEP_S = 15.0
LOAD_WINDOW_S = 300.0
"""Restarts shorter than half of it leave no trace in the load."""
_UNITS = {"cpu_share": ", or cpu=COLUMN@percent", "latency_s": "@s or @ms"}
"""What a mapping needs or may have behind the column."""
DIP_S = 90.0
"""Fewer instances for not longer than that are a dip, no scaling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """A recording as the model takes it: in steps, with the load that it came from.

    ``interval_s`` is the time between two readings of the recording, at least a step.
    """

    step_s: float
    times_s: FloatArray
    load_per_s: FloatArray
    instances: FloatArray
    cpu_share: FloatArray
    lag_items: FloatArray
    latency_s: FloatArray
    notes: tuple[str, ...]
    interval_s: float
    load_was_read: Flags
    """By step, not within a long time in which nobody read it."""

    @property
    def dip_steps(self) -> int:
        return dip_steps(self.step_s, self.interval_s)

    @property
    def lag_s(self) -> FloatArray:
        """How long it takes that as many records come as wait; NaN where none comes."""
        lag_s: FloatArray = np.full(self.lag_items.size, np.nan)
        return np.divide(self.lag_items, self.load_per_s, out=lag_s, where=self.load_per_s > 0)


def dip_steps(step_s: float, interval_s: float) -> int:
    """Steps of a dip: one that begins within the time between two readings is in both of them."""
    return round(max(DIP_S, 2 * interval_s) / step_s)


def require_signals(recording: Recording, *more: str) -> None:
    """Raise SpecError naming every signal that a model of a job needs, or ``more``, and lacks."""
    has = recording.readings
    missing = [name for name in ("instances", "cpu_share", *more) if name not in has]
    problems = [
        f"has no {name}; map it (--map {name.split('_')[0]}=COLUMN{_UNITS.get(name, '')}), "
        "or record it"
        for name in missing
    ]
    if "arrivals_per_s" not in has and "rate_per_s" not in has:
        problems.append("has neither arrivals nor rate; map one (--map rate=COLUMN)")
    if problems:
        if recording.unread:
            problems.append(f"columns that are not read: {listed_names(recording.unread)}")
        raise SpecError(recording.name, problems)


def readings_of(recording: Recording, step_s: float = STEP_S) -> Readings:
    """The recording in equal steps. Raises SpecError naming every signal that is missing."""
    require_signals(recording)
    sparse = evenly(recording, step_s)
    even = filled(sparse, LOAD_WINDOW_S)
    absent = np.full(len(even.times_s), np.nan)
    interval_s = max(step_s, interval_of(recording))
    latency_s = even.readings.get("latency_s", absent)
    if interval_s > step_s and "latency_s" in sparse.readings:
        latency_s = _of_the_nearest(sparse.readings["latency_s"], latency_s)
    load, note, was_read = _load(even, step_s, max(LOAD_WINDOW_S, 2 * interval_s))
    unread_min = float((~was_read).sum()) * step_s / 60
    unread = (
        f"the load was not read in {unread_min:.3g} min; a straight line stands for it in replays, "
        "costs and shares: cut them out, or record again"
    )
    return Readings(
        step_s=step_s,
        times_s=even.times_s,
        load_per_s=load,
        instances=even.readings["instances"],
        cpu_share=even.readings["cpu_share"],
        lag_items=even.readings.get("lag_items", absent),
        latency_s=latency_s,
        notes=(*even.notes, note, *((unread,) if unread_min else ())),
        load_was_read=was_read,
        interval_s=interval_s,
    )


def _of_the_nearest(sparse: FloatArray, bridged: FloatArray) -> FloatArray:
    """The nearest reading wherever a line was: a line from a late reading is late on both sides of
    it, up to twice as long as a reading stands for."""
    measured = np.flatnonzero(~np.isnan(sparse))
    if not measured.size:
        return bridged
    halfway = (measured[1:] + measured[:-1]) / 2
    nearest = sparse[measured[np.searchsorted(halfway, np.arange(sparse.size))]]
    return np.where(np.isnan(bridged), np.nan, nearest)


def interval_of(recording: Recording) -> float:
    """Seconds between two readings of a signal (the median of the one that is read most often), in
    whole steps of the model, at least one. Other signals may have been read at other times."""
    read_s = (recording.times_s[~np.isnan(signal)] for signal in recording.readings.values())
    apart_s = [float(np.median(np.diff(times_s))) for times_s in read_s if times_s.size > 1]
    return STEP_S * max(1, round(min(apart_s, default=0.0) / STEP_S))


def averaged(values: FloatArray, steps: int) -> FloatArray:
    """Means of so many values on end each; of the last ones, if they are fewer, theirs."""
    begins = np.arange(0, values.size, steps)
    means: FloatArray = np.add.reduceat(values, begins) / np.diff(begins, append=values.size)
    return means


def _load(even: Recording, step_s: float, longest_s: float) -> tuple[FloatArray, str, Flags]:
    """Records that arrived per second, everywhere; where that is from; and which steps are not
    within more than ``longest_s`` without a reading."""
    name = "arrivals_per_s" if "arrivals_per_s" in even.readings else "rate_per_s"
    values = even.readings[name]
    measured = np.flatnonzero(~np.isnan(values))
    if measured.size == 0:
        raise SpecError(even.name, [f"{name} has no readings"])
    was_read: Flags = np.ones(values.size, dtype=bool)
    for before, after in zip([-1, *measured], [*measured, values.size], strict=True):
        if (after - before) * step_s > longest_s:
            was_read[before + 1 : after] = False
    whole = np.interp(np.arange(values.size), measured, values[measured])
    if name == "arrivals_per_s":
        return whole, "the load is what arrived, as recorded", was_read
    note = (
        f"the load is the median of what was processed within {LOAD_WINDOW_S:g} s: what waited "
        "during a restart and came after it is spread"
    )
    return _median_around(whole, round(LOAD_WINDOW_S / 2 / step_s)), note, was_read


def _median_around(values: FloatArray, steps: int) -> FloatArray:
    """Of so many before and after each; beyond the ends are the first and the last."""
    medians: FloatArray = median_filter(values, 2 * steps + 1, mode="nearest")
    return medians


def median_of(values: FloatArray) -> float:
    """The median of what was read; NaN where nothing was."""
    measured = values[~np.isnan(values)]
    return float(np.median(measured)) if measured.size else float("nan")


def lasting_counts(instances: FloatArray, dip_steps: int) -> FloatArray:
    """The number of instances by step without what is no longer than a dip.

    Where nothing was read the last count holds, before the first reading that one.
    """
    return np.round(_median_around(held_counts(instances), dip_steps))


def lasting_changes(instances: FloatArray, dip_steps: int) -> Flags:
    """Steps at which the number of instances becomes another one for longer than a dip.

    One of which nobody knows when it was, because nothing was read shortly before, is left out.
    """
    lasting = lasting_counts(instances, dip_steps)
    absent = np.concatenate([np.zeros(dip_steps, dtype=bool), np.isnan(instances)])
    unknown = np.lib.stride_tricks.sliding_window_view(absent, dip_steps + 1).any(axis=1)
    changes: Flags = (np.diff(lasting, prepend=lasting[0]) != 0) & ~unknown
    return changes


def held_counts(values: FloatArray) -> FloatArray:
    """Absent readings as the last one before them, or the first one after, rounded; 0 of none."""
    from pandas import Series

    return np.round(Series(values).ffill().bfill().fillna(0).to_numpy(dtype=np.float64))
