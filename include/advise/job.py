"""A model of a job whose instances scale together, and how it is read off a recording."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from include.model.errors import SpecError
from include.recordings import Recording, evenly, filled
from include.recordings.recording import FloatArray

Flags = NDArray[np.bool_]
STEP_S = 15.0
LOAD_WINDOW_S = 300.0
"""Restarts shorter than half of it leave no trace in the load."""
EPISODE_S = 180.0
BEFORE_S = 30.0
"""A restart begins before the first reading that shows it: latency is known of what got out."""
SETTLES_S = 300.0
BINS = 12
DIP_STEPS = 6
"""Readings of fewer instances that are not more than that are a dip, no scaling."""
DRAWS = 200
LEAST_INSTANCES = 0.5
LEAST_SEEN = 5
"""So many scalings, and restarts of their own, a comparison of the two takes."""
PLANNED_SHARE = 0.5
"""Of what an unplanned restart does, a planned one does this much where no recording tells: it
loses no time until somebody notices. Chosen; seen: one recording of a job under the HPA, whose own
scalings give the same (docs/advise.md)."""
FAR_OFF = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What a restart does to readings, by step from its beginning: the mean of those recorded.

    ``cpu_excess`` is a share that comes on top, ``lag_s`` the records that wait over the load,
    ``latency_excess_s`` what comes on top of the latency. Empty where none was recorded.
    """

    cpu_excess: tuple[float, ...] = ()
    lag_s: tuple[float, ...] = ()
    latency_excess_s: tuple[float, ...] = ()
    seen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedValue:
    """A value and the interval that 95 % of resampled hours (or shorter parts) give."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class JobModel:
    """What a recording tells of a job in steps of ``step_s``.

    ``cpu_at`` (shares) belongs to ``rates_per_s`` (records per second and instance), ascending.
    ``overhead`` (a share of each instance) and ``demand_ms`` (CPU time per record) are the line
    through the same readings. ``most_per_s`` is the most that an instance was seen to process,
    ``cpu_at_most`` the highest CPU: what a job uses that is behind.
    A scaling does ``planned_share`` of what ``restart`` does; ``incidents_s`` are the times of
    restarts that no scaling explains.
    """

    name: str
    step_s: float
    rates_per_s: tuple[float, ...]
    cpu_at: tuple[float, ...]
    overhead: FittedValue
    demand_ms: FittedValue
    most_per_s: float
    cpu_at_most: float
    quiet_lag_s: float
    quiet_latency_s: float
    cpu_noise: float
    restart: Restart
    planned_share: float = PLANNED_SHARE
    incidents_s: tuple[float, ...]
    notes: tuple[str, ...]

    def cpu_share(self, rate_per_s: FloatArray) -> FloatArray:
        """CPU of instances that process that much each; a line beyond what was recorded."""
        rates, shares = np.array(self.rates_per_s), np.array(self.cpu_at)
        slope = self.demand_ms.value / 1000
        inside: FloatArray = np.interp(rate_per_s, rates, shares)
        above = np.maximum(0.0, rate_per_s - rates[-1]) * slope
        below = np.maximum(0.0, rates[0] - rate_per_s) * slope
        shares_now: FloatArray = np.clip(inside + above - below, 0.0, 1.0)
        return shares_now


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """A recording as the model takes it: in steps, with the load that it came from."""

    step_s: float
    times_s: FloatArray
    load_per_s: FloatArray
    instances: FloatArray
    cpu_share: FloatArray
    lag_items: FloatArray
    latency_s: FloatArray
    notes: tuple[str, ...]


def readings_of(recording: Recording, step_s: float = STEP_S) -> Readings:
    """The recording in equal steps. Raises SpecError naming every signal that is missing."""
    has = recording.readings
    missing = [name for name in ("instances", "cpu_share") if name not in has]
    problems = [
        f"has no {name}; map it (--map {name.split('_')[0]}=COLUMN), or record it"
        for name in missing
    ]
    if "arrivals_per_s" not in has and "rate_per_s" not in has:
        problems.append("has neither arrivals nor rate; map one (--map rate=COLUMN)")
    if problems:
        raise SpecError(recording.name, problems)
    even = filled(evenly(recording, step_s), LOAD_WINDOW_S)
    absent = np.full(len(even.times_s), np.nan)
    load, note = _load(even, step_s)
    return Readings(
        step_s=step_s,
        times_s=even.times_s,
        load_per_s=load,
        instances=even.readings["instances"],
        cpu_share=even.readings["cpu_share"],
        lag_items=even.readings.get("lag_items", absent),
        latency_s=even.readings.get("latency_s", absent),
        notes=(*even.notes, note),
    )


def _load(even: Recording, step_s: float) -> tuple[FloatArray, str]:
    """Records that arrived per second, everywhere; and where that is from."""
    name = "arrivals_per_s" if "arrivals_per_s" in even.readings else "rate_per_s"
    values = even.readings[name]
    known = np.flatnonzero(~np.isnan(values))
    if known.size == 0:
        raise SpecError(even.name, [f"{name} has no readings"])
    whole = np.interp(np.arange(values.size), known, values[known])
    if name == "arrivals_per_s":
        return whole, "the load is what arrived, as recorded"
    half = round(LOAD_WINDOW_S / 2 / step_s)
    padded = np.pad(whole, half, mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    note = (
        f"the load is the median of what was processed within {LOAD_WINDOW_S:g} s: what waited "
        "during a restart and came after it is spread"
    )
    return np.median(around, axis=1), note


def fit(recording: Recording, step_s: float = STEP_S) -> JobModel:
    """The model that the readings give. Raises SpecError where they cannot give one."""
    read = readings_of(recording, step_s)
    if np.nanmax(read.instances) <= LEAST_INSTANCES:
        told = "instances are below 1 throughout; map the column that counts them"
        raise SpecError(recording.name, [told])
    starts = _restarts(read)
    settled = _settled(read, starts)
    if settled.sum() < 10 * BINS:
        told = f"has {settled.sum()} readings between restarts, a model needs {10 * BINS}"
        raise SpecError(recording.name, [f"{told}; record at least an hour"])
    each = read.load_per_s[settled] / read.instances[settled]
    cpu = read.cpu_share[settled]
    if each.max() <= 1.2 * each.min():
        told = f"loads of an instance from {each.min():.0f} to {each.max():.0f} records/s only"
        raise SpecError(
            recording.name, [f"{told}; CPU per record cannot be told from overhead: record a day"]
        )
    rates, shares = _curve(each, cpu)
    overhead, demand = _line(each, cpu, round(3600 / step_s))
    if demand.low <= 0:
        told = (
            f"CPU does not rise with the load ({demand.low:.3g} to {demand.high:.3g} ms a record)"
        )
        problem = (
            f"{told}; map the CPU of the instances, or record more of the load's ups and downs"
        )
        raise SpecError(recording.name, [problem])
    changed = lasting_changes(read.instances)
    own = [start for start in starts if not changed[max(0, start - 4) : start + 4].any()]
    restart, notes = _episodes(read, own, rates, shares)
    scaling, _ = _episodes(read, _scalings(read, changed), rates, shares)
    restart, planned_share, notes = _compared(restart, scaling, notes)
    counts = np.unique(np.round(read.instances[settled]))
    if counts.size == 1:
        notes.append(
            f"only {counts[0]:.0f} instances were recorded: that the overhead belongs to each "
            "instance, and not to the job, is assumed; record another count to tell"
        )
    quiet_lag = read.lag_items[settled] / np.maximum(read.load_per_s[settled], 1.0)
    most, unlikely = _most_per_s(recording, read)
    notes += [*unlikely, *_coarse(recording, step_s)]
    predicted = np.interp(each, rates, shares)
    return JobModel(
        name=recording.name,
        step_s=step_s,
        rates_per_s=tuple(rates.tolist()),
        cpu_at=tuple(shares.tolist()),
        overhead=overhead,
        demand_ms=demand,
        most_per_s=most,
        cpu_at_most=float(np.nanmax(read.cpu_share)),
        quiet_lag_s=_median(quiet_lag),
        quiet_latency_s=_median(read.latency_s[settled]),
        cpu_noise=float(np.std(cpu - predicted)),
        restart=restart,
        planned_share=planned_share,
        incidents_s=tuple(float(read.times_s[start]) for start in own),
        notes=(*read.notes, *notes),
    )


def _most_per_s(recording: Recording, read: Readings) -> tuple[float, list[str]]:
    """The most that an instance processed in a reading.

    One that is far above what two readings on end reach is a fault of the monitoring; then that
    counts, and a note says so. Instances that are away for a moment count as there.
    """
    name = "rate_per_s" if "rate_per_s" in recording.readings else "arrivals_per_s"
    processed = filled(evenly(recording, read.step_s), LOAD_WINDOW_S).readings[name]
    counts = np.fmax(read.instances, lasting_counts(read.instances))
    each = processed / np.maximum(counts, 1.0)
    single = float(np.nanmax(each))
    if each.size < 2:
        return single, []
    sustained = float(np.nanmax(np.minimum(each[1:], each[:-1])))
    if single <= FAR_OFF * sustained:
        return single, []
    told = f"one reading is {single / sustained:.3g} times the most that was processed in two on"
    return sustained, [f"{told} end; it does not count as capacity"]


def _coarse(recording: Recording, step_s: float) -> list[str]:
    """A note where readings come so seldom that a restart is smeared over them."""
    apart_s = float(np.median(np.diff(recording.times_s))) if recording.times_s.size > 1 else 0.0
    if apart_s <= 2 * step_s:
        return []
    told = f"readings come every {apart_s:g} s, so what a restart does is smeared"
    return [f"{told}; record one every {step_s:g} s"]


def _scalings(read: Readings, changed: Flags) -> list[int]:
    """Where scalings begin that no other one comes shortly before."""
    steps = np.flatnonzero(changed)
    apart = np.diff(steps, prepend=-(10**9)) * read.step_s >= EPISODE_S
    return [int(step) - round(BEFORE_S / read.step_s) for step in steps[apart]]


def _compared(own: Restart, scaling: Restart, notes: list[str]) -> tuple[Restart, float, list[str]]:
    """The restart that counts, what a scaling does of it, and what ``notes`` say then: latency
    that comes on top, added up over an episode."""
    late_s, planned_s = sum(own.latency_excess_s), sum(scaling.latency_excess_s)
    if scaling.seen >= LEAST_SEEN and planned_s > 0:
        if not own.seen:
            told = f"what a scaling does is the mean of {scaling.seen} that were recorded"
            return scaling, 1.0, [f"{told}; no other restart was"]
        if own.seen >= LEAST_SEEN and late_s > 0:
            share = planned_s / late_s
            told = f"a scaling does {share:.2f} of what a restart does by itself"
            return own, share, [*notes, f"{told} ({scaling.seen} and {own.seen} recorded)"]
    if not own.seen:
        return own, PLANNED_SHARE, notes
    told = f"fewer than {LEAST_SEEN} scalings, or restarts by themselves, were recorded: that a"
    assumed = f"{told} scaling does {PLANNED_SHARE:g} of what a restart does is assumed"
    return own, PLANNED_SHARE, [*notes, assumed]


def _median(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")


def lasting_counts(instances: FloatArray) -> FloatArray:
    """The number of instances by step without what is no longer than a dip."""
    padded = np.pad(np.nan_to_num(instances), DIP_STEPS, mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * DIP_STEPS + 1)
    lasting: FloatArray = np.round(np.median(around, axis=1))
    return lasting


def lasting_changes(instances: FloatArray) -> Flags:
    """Steps at which the number of instances becomes another one for longer than a dip."""
    lasting = lasting_counts(instances)
    changes: Flags = np.diff(lasting, prepend=lasting[0]) != 0
    return changes


def _restarts(read: Readings) -> list[int]:
    """Where latency, or else lag, leaves what is usual: twice the median."""
    signal = read.latency_s if not np.isnan(read.latency_s).all() else read.lag_items
    if np.isnan(signal).all():
        return []
    factor = 2.0 if signal is read.latency_s else 5.0
    hot = np.nan_to_num(signal, nan=0.0) > factor * float(np.nanmedian(signal))
    apart, back = round(120 / read.step_s), round(BEFORE_S / read.step_s)
    found = [
        step for step in np.flatnonzero(hot) if step >= apart and not hot[step - apart : step].any()
    ]
    return [int(step) - back for step in found]


def _settled(read: Readings, starts: list[int]) -> Flags:
    """Steps with all readings, away from restarts, changes of the instances and the beginning."""
    known = ~(np.isnan(read.cpu_share) | np.isnan(read.instances)) & (
        read.instances > LEAST_INSTANCES
    )
    wait = round(SETTLES_S / read.step_s)
    known[:wait] = False
    for start in (*starts, *np.flatnonzero(lasting_changes(read.instances)).tolist()):
        known[max(0, start - 4) : start + wait] = False
    return known


def _curve(each: FloatArray, cpu: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means of equally many readings, made to rise."""
    order = np.argsort(each, kind="stable")
    groups = np.array_split(order, BINS)
    rates = np.array([each[group].mean() for group in groups])
    shares = np.array([cpu[group].mean() for group in groups])
    return rates, isotonic_regression(shares).x


def _line(each: FloatArray, cpu: FloatArray, block: int) -> tuple[FittedValue, FittedValue]:
    """Overhead and demand (ms) by least squares; intervals from resampled blocks.

    Of less than twelve blocks shorter ones are taken: one alone would always be drawn, and its
    interval would have no width.
    """
    block = min(block, each.size // BINS)
    slope, offset = np.polyfit(each, cpu, 1)
    draw = np.random.default_rng(0)
    blocks = [slice(at, at + block) for at in range(0, each.size, block)]
    lines = []
    for _ in range(DRAWS):
        rows = np.concatenate(
            [np.arange(each.size)[blocks[i]] for i in draw.integers(0, len(blocks), len(blocks))]
        )
        lines.append(np.polyfit(each[rows], cpu[rows], 1))
    low, high = np.percentile(np.array(lines), [2.5, 97.5], axis=0)
    return (
        FittedValue(value=float(offset), low=float(low[1]), high=float(high[1])),
        FittedValue(
            value=1000 * float(slope), low=1000 * float(low[0]), high=1000 * float(high[0])
        ),
    )


def _episodes(
    read: Readings, starts: list[int], rates: FloatArray, shares: FloatArray
) -> tuple[Restart, list[str]]:
    """The mean restart of those that no change of the instances explains."""
    steps = round(EPISODE_S / read.step_s)
    whole = [start for start in starts if start >= 0 and start + steps <= read.times_s.size]
    if not whole:
        return Restart(), [
            "no restart was recorded, so scaling costs nothing in the model; record one"
        ]
    rows = np.array(whole)[:, None] + np.arange(steps)
    each = read.load_per_s[rows] / np.maximum(read.instances[rows], 1.0)
    usual = np.interp(each, rates, shares)
    with warnings.catch_warnings():  # of a signal that nobody recorded there is no mean
        warnings.simplefilter("ignore", RuntimeWarning)
        cpu = np.nanmean(read.cpu_share[rows] - usual, axis=0)
        lag = np.nanmean(read.lag_items[rows] / np.maximum(read.load_per_s[rows], 1.0), axis=0)
        late = np.nanmean(read.latency_s[rows], axis=0) - _median(read.latency_s)
    restart = Restart(
        cpu_excess=tuple(np.nan_to_num(cpu).tolist()),
        lag_s=tuple(np.nan_to_num(lag).tolist()),
        latency_excess_s=tuple(np.maximum(0.0, np.nan_to_num(late)).tolist()),
        seen=len(whole),
    )
    return restart, [f"what a restart does is the mean of {len(whole)} that were recorded"]
