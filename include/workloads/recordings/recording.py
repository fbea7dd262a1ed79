"""A recording of a running stream job: readings over time, as somebody's monitoring kept them.

What was not read is NaN. Absent is never zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from include.model.errors import SpecError

FloatArray = NDArray[np.float64]
MOST_STEPS = 5_000_000
_LAST_DIGIT = 1e-9
_PERCENTILE = re.compile(
    r"(?:^|[^a-z0-9]|latency)p(\d\d|999|100)(?:[._](9)(?![a-z0-9]))?(?:ms|s)?(?![a-z0-9])"
)
_QUANTILE = re.compile(r"quantile(?:_over_time)?[\s\"'=(]*(0?\.\d+|1)")
_IN_WORDS = re.compile(
    r"(\d\d(?:\.\d)?)(?:th|st|nd|rd)?[ _-]?(?:percentile|pctl?)"
    r"|(?:percentile|pctl?|(?<![a-z])q)[ _-]?(\d\d)"
)
_MEAN = re.compile(r"(?<![a-z])(?:mean|avg|average)(?![a-z])")
_LABELS = re.compile(r"\{.*?\}")
HELD = ("instances", "desired_instances")
"""Counts: between two readings the last one holds."""
SIGNALS: Mapping[str, str] = {
    "arrivals_per_s": "arrivals",  # records that are offered
    "rate_per_s": "rate",  # records that are processed
    "lag_items": "lag",  # records that wait
    "latency_s": "latency",  # from the arrival of a record to its result
    "cpu_share": "cpu",  # 0 to 1: CPU of what instances reserve, mean over instances
    "instances": "instances",  # that run, of all operators
    "desired_instances": "desired",  # instances that were asked for
}
"""What is read of a job, each with the short name that users write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Readings of one job, all at the same times.

    ``times_s`` ascend from 0; ``readings`` have an array of the same length by signal, NaN where
    nothing was read. ``began_at`` is the first time in epoch seconds, where times were absolute.
    ``notes`` are sentences: what was mapped and converted, how many values are absent.
    ``columns`` are the columns, series or queries that the readings were read from,
    ``latency_column`` that of the latency, ``cpu_column`` that of ``cpu_share``, ``unread`` the
    other columns of the file.
    """

    name: str
    times_s: FloatArray
    readings: Mapping[str, FloatArray]
    began_at: float | None
    notes: tuple[str, ...]
    columns: tuple[str, ...] = ()
    latency_column: str = ""
    cpu_column: str = ""
    unread: tuple[str, ...] = ()
    instances_per_host: int | None = None
    """As recorded; None where the recording does not say."""
    counters: tuple[str, ...] = ()
    """Signals that were read from a counter: what it grew by stands at the later reading."""

    def at(self, rows: slice | NDArray[np.bool_]) -> Recording:
        readings = {name: values[rows] for name, values in self.readings.items()}
        return replace(self, times_s=self.times_s[rows], readings=readings)

    @property
    def is_busy_time(self) -> bool:
        """Whether ``cpu_share`` is the time that instances are busy, which stands in for CPU."""
        return "busy" in _LABELS.sub("", self.cpu_column.lower())

    @property
    def latency_percentile(self) -> float | None:
        """Which percentile the latency is, if its column says so: 95 of ``latency_p95_ms``."""
        name = self.latency_column.lower()
        if match := _QUANTILE.search(name):
            return 100 * float(match[1])
        name = _LABELS.sub("", name)  # of a series: they may have a p10 of their own
        percent = 50.0 if "median" in name else 0.0
        if match := _PERCENTILE.search(name):
            whole, tenths = match.groups(default="0")
            percent = 99.9 if whole == "999" else int(whole) + int(tenths) / 10
        elif match := _IN_WORDS.search(name):
            percent = float(match[1] or match[2])
        return percent if percent >= 50 else None  # below, it is the name of something

    @property
    def latency_is_mean(self) -> bool:
        """Whether the column of the latency says that it is a mean: ``latency_avg_ms``."""
        return bool(_MEAN.search(_LABELS.sub("", self.latency_column.lower())))


def evenly(recording: Recording, step_s: float) -> Recording:
    """The recording in equal steps from 0; a time is where its step begins.

    A reading of a step is the plain mean of those that fall into it, and NaN where none does: what
    was read in one step says nothing of the next. Raises SpecError for a step that cannot be.
    """
    end_s = float(recording.times_s[-1])
    if not step_s > 0 or step_s == np.inf:
        raise SpecError(recording.name, [f"step_s must be a number above 0, got {step_s:g}"])
    if end_s / step_s >= MOST_STEPS:
        least = f"at least {end_s / (MOST_STEPS - 1):g}"
        raise SpecError(recording.name, [f"step_s must be {least} for {end_s:g} s, got {step_s:g}"])
    steps = np.floor(recording.times_s / step_s + _LAST_DIGIT).astype(np.int64)
    count = int(steps[-1]) + 1
    readings = {name: _means(steps, values, count) for name, values in recording.readings.items()}
    return replace(
        recording,
        times_s=np.arange(count, dtype=np.float64) * step_s,
        readings=readings,
        notes=(*recording.notes, f"in steps of {step_s:g} s, each the plain mean of its readings"),
    )


def _means(steps: NDArray[np.int64], values: FloatArray, count: int) -> FloatArray:
    measured = ~np.isnan(values)
    times = np.bincount(steps[measured], minlength=count)
    sums = np.bincount(steps[measured], weights=values[measured], minlength=count)
    means: FloatArray = np.full(count, np.nan)
    np.divide(sums, times, out=means, where=times > 0)
    return means


def filled(recording: Recording, longest_s: float) -> Recording:
    """The recording with its short gaps bridged, and a note that counts them.

    A gap goes from one reading of a signal to the next one. One of at most ``longest_s`` is
    bridged by a line, of instances by the last count; a longer one stays NaN, and so does what
    comes before the first reading and after the last.
    """
    readings, notes = {}, []
    for name, values in recording.readings.items():
        readings[name], bridged, left = _bridged(
            recording.times_s, values, longest_s, hold=name in HELD
        )
        if bridged or left:
            how = "by the last count" if name in HELD else "by a line"
            notes.append(
                f"{name}: {bridged} absent readings bridged {how} (gaps of at most "
                f"{longest_s:g} s), {left} stay absent"
            )
    return replace(recording, readings=readings, notes=(*recording.notes, *notes))


def _bridged(
    times_s: FloatArray, values: FloatArray, longest_s: float, *, hold: bool
) -> tuple[FloatArray, int, int]:
    """The values, how many were bridged, how many stay absent."""
    absent = np.isnan(values)
    measured = np.flatnonzero(~absent)
    if not absent.any() or measured.size == 0:
        return values, 0, int(absent.sum())
    rows = np.flatnonzero(absent)
    after = np.searchsorted(measured, rows)
    inside = (after > 0) & (after < measured.size)
    rows, after = rows[inside], after[inside]
    before_s, after_s = times_s[measured[after - 1]], times_s[measured[after]]
    rows_in = rows[after_s - before_s <= longest_s + _LAST_DIGIT]
    result = values.copy()
    if hold:
        result[rows_in] = values[measured[np.searchsorted(measured, rows_in) - 1]]
    else:
        result[rows_in] = np.interp(times_s[rows_in], times_s[measured], values[measured])
    return result, rows_in.size, int(absent.sum()) - rows_in.size
