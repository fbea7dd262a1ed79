"""A model of a job whose instances scale together, and how it is read off a recording."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression

from include.advise.operators import SETTLED, JobGraph
from include.advise.readings import (
    LOAD_WINDOW_S,
    STEP_S,
    Flags,
    Readings,
    interval_of,
    lasting_changes,
    lasting_counts,
    median_of,
    readings_of,
)
from include.advise.request import BY_JOB
from include.advise.restarts import (
    EPISODE_S,
    LEAST_SEEN,
    Restart,
    learned,
    restarts_in,
    timed,
)
from include.advise.times import EstimatedTime, FittedValue, ScalingTimes, start_up_in
from include.model.errors import SpecError
from include.workloads.recordings import Recording, evenly, filled
from include.workloads.recordings.recording import FloatArray

SETTLES_S = 300.0
BINS = 12
DRAWS = 200
LEAST_INSTANCES = 0.5
PEAK, STEADY = 90.0, 99.0
"""Percentiles that count as capacity: of the highest readings after restarts, or of all readings
where there are too few restarts."""
LEAST_PLANNED = 1e-3
TAKES_S = 15.0
"""From the decision to an instance that works, where neither recording nor user tells."""


@dataclass(frozen=True, kw_only=True)
class JobModel:
    """What a recording tells of a job in steps of ``step_s``.

    ``cpu_at`` (shares) belongs to ``rates_per_s`` (records per second and instance), ascending.
    ``overhead`` (a share of each instance) and ``demand_ms`` (CPU time per record) are the line
    through the same readings, and ``known_to_per_s`` is the load of an instance up to which there
    were any: beyond it CPU and latency are not known. ``most_per_s`` is what an instance can
    process, ``cpu_at_most`` the highest CPU: what a job uses that is behind.
    ``incidents_s`` are the times of restarts that no scaling explains. ``times`` says how that was
    known.
    """

    name: str
    step_s: float
    rates_per_s: tuple[float, ...]
    cpu_at: tuple[float, ...]
    overhead: FittedValue
    demand_ms: FittedValue
    most_per_s: float
    known_to_per_s: float
    cpu_at_most: float
    quiet_lag_s: float
    quiet_latency_s: float
    cpu_noise: float
    restart: Restart
    incidents_s: tuple[float, ...]
    notes: tuple[str, ...]
    times: ScalingTimes = ScalingTimes()  # noqa: RUF009  frozen
    cpu_residuals: tuple[float, ...] = ()
    """What readings between restarts are away from ``cpu_at``, in order; their standard deviation
    is ``cpu_noise``."""
    operators: JobGraph | None = None
    """Where operators were recorded, what they do."""

    @property
    def takes_s(self) -> float:
        """From the decision to an instance that works."""
        start_up_s = self.times.start_up.value
        return TAKES_S if start_up_s is None else start_up_s.value

    def operators_under(self, controller: str) -> JobGraph | None:
        """What is replayed under a controller that decides on operators, where they were recorded;
        None where the job is replayed as a whole."""
        return None if controller in BY_JOB else self.operators

    def is_beyond(self, load_per_s: FloatArray, instances: FloatArray) -> Flags:
        """Where the load of an instance is above all that were recorded."""
        beyond: Flags = (instances >= 1) & (load_per_s > instances * self.known_to_per_s)
        return beyond

    def cpu_share(self, rate_per_s: FloatArray) -> FloatArray:
        """CPU of instances that process that much each; beyond what was recorded a line, on which
        no verdict relies (`is_beyond`)."""
        rates, shares = np.array(self.rates_per_s), np.array(self.cpu_at)
        slope = self.demand_ms.value / 1000
        inside: FloatArray = np.interp(rate_per_s, rates, shares)
        above = np.maximum(0.0, rate_per_s - rates[-1]) * slope
        below = np.maximum(0.0, rates[0] - rate_per_s) * slope
        shares_now: FloatArray = np.clip(inside + above - below, 0.0, 1.0)
        return shares_now


def fit(recording: Recording) -> JobModel:
    """The model that the readings give. Raises SpecError where they cannot give one."""
    read = readings_of(recording)
    if np.nanmax(read.instances) <= LEAST_INSTANCES:
        note = "instances are below 1 throughout; map the column that counts them"
        raise SpecError(recording.name, [note])
    starts = restarts_in(read)
    settled = _settled(read, starts)
    if settled.sum() < 10 * BINS:
        minutes, whole_min, least_min = (
            count * STEP_S / 60 for count in (settled.sum(), settled.size, 10 * BINS)
        )
        note = (
            f"{minutes:.3g} of its {whole_min:.3g} min are {SETTLES_S / 60:.3g} min after the last "
            f"restart or scaling, a model needs {least_min:.3g}"
        )
        how = "record at least an hour, under a policy that scales less often"
        raise SpecError(recording.name, [f"{note}; {how}"])
    counts = np.fmax(read.instances, lasting_counts(read.instances, read.dip_steps))
    each = read.load_per_s[settled] / counts[settled]
    cpu = read.cpu_share[settled]
    if each.max() <= 1.2 * each.min():
        note = f"loads of an instance from {each.min():.0f} to {each.max():.0f} records/s only"
        raise SpecError(
            recording.name, [f"{note}; CPU per record cannot be told from overhead: record a day"]
        )
    rates, shares = _curve(each, cpu)
    overhead, demand = _line(each, cpu, round(3600 / STEP_S))
    if demand.low <= 0:
        note = (
            f"CPU does not rise with the load ({demand.low:.3g} to {demand.high:.3g} ms a record)"
        )
        problem = (
            f"{note}; map the CPU of the instances, or record more of the load's ups and downs"
        )
        raise SpecError(recording.name, [problem])
    changed = lasting_changes(read.instances, read.dip_steps)
    own = [start for start in starts if not changed[max(0, start - 4) : start + 4].any()]
    restart, times, notes = learned(read, own, changed, (rates, shares))
    sizes = np.unique(np.round(read.instances[settled]))
    if sizes.size == 1:
        notes.append(
            f"only {sizes[0]:.0f} instances were recorded: that the overhead belongs to each "
            "instance, and not to the job, is assumed; record another count to tell"
        )
    known_to = float(np.percentile(each, SETTLED))
    most, told_most = _most_per_s(recording, read, counts, starts)
    notes += [told_most, *_coarse(recording)]
    predicted = np.interp(each, rates, shares)
    return JobModel(
        name=recording.name,
        step_s=STEP_S,
        rates_per_s=tuple(rates.tolist()),
        cpu_at=tuple(shares.tolist()),
        overhead=overhead,
        demand_ms=demand,
        most_per_s=max(most, known_to),
        known_to_per_s=known_to,
        cpu_at_most=float(np.nanmax(read.cpu_share)),
        quiet_lag_s=median_of(read.lag_s[settled]),
        quiet_latency_s=median_of(read.latency_s[settled]),
        cpu_noise=float(np.std(cpu - predicted)),
        cpu_residuals=tuple((cpu - predicted).round(4).tolist()),
        restart=restart,
        incidents_s=tuple(float(read.times_s[start]) for start in own),
        notes=(*read.notes, *notes),
        times=replace(times, start_up=start_up_in(recording, TAKES_S)),
    )


def with_times(job: JobModel, start_up_s: float | None, restart_s: float | None) -> JobModel:
    """The model with what a user knows better: the start of an instance, the restart by a scaling,
    both in seconds; None leaves what the recording told."""
    times = job.times
    if start_up_s is not None:
        times = replace(times, start_up=_as_asked(start_up_s, "--start-up-s"))
    if restart_s is None:
        return replace(job, times=times)
    asked_s = _as_asked(restart_s, "--restart-s")
    times = replace(times, by_scaling=asked_s, asked_restart_s=restart_s)
    restart = timed(job.restart, job.quiet_lag_s, job.step_s, restart_s)
    return replace(job, times=times, restart=restart)


def drawn(job: JobModel, seed: int) -> JobModel:
    """The model of one replay, as what a scaling does is not known for certain: the first seed has
    its middle, the second the most, the third the least, and others any of what is between."""
    low, high = (max(LEAST_PLANNED, end) for end in job.restart.planned_range)
    ends = {0: job.restart.planned_share, 1: job.restart.planned_share, 2: high, 3: low}
    if seed not in ends:
        ends[seed] = low * (high / low) ** float(np.random.default_rng(seed).uniform())
    return replace(job, restart=replace(job.restart, planned_share=ends[seed]))


def _as_asked(seconds: float, option: str) -> EstimatedTime:
    value = FittedValue(value=seconds, low=seconds, high=seconds)
    return EstimatedTime(value=value, said=f"as asked for with {option}")


def _most_per_s(
    recording: Recording, read: Readings, counts: FloatArray, starts: list[int]
) -> tuple[float, str]:
    """What an instance can process, and a note on how that is known.

    After a restart a job goes as fast as it can: of the highest readings after each, the one that
    a tenth exceed. The highest of all would grow with the length of a recording, and may be one in
    which a monitor has counted two. ``counts`` are instances, also those away for a moment.
    """
    name = "rate_per_s" if "rate_per_s" in recording.readings else "arrivals_per_s"
    processed = filled(evenly(recording, read.step_s), LOAD_WINDOW_S).readings[name]
    each = processed / np.maximum(counts, 1.0)
    steps = round(EPISODE_S / read.step_s)
    after = [each[start : start + steps] for start in starts]
    peaks = [float(np.nanmax(one)) for one in after if not np.isnan(one).all()]
    if len(peaks) >= LEAST_SEEN:
        note = f"capacity is the highest reading after a restart that {100 - PEAK:g} % of"
        return float(np.percentile(peaks, PEAK, method="lower")), f"{note} {len(peaks)} exceed"
    note = f"capacity is what {100 - STEADY:g} % of the readings exceed, and may be higher"
    return float(np.nanpercentile(each, STEADY)), f"{note}; record {LEAST_SEEN} restarts to tell"


def _coarse(recording: Recording) -> list[str]:
    """A note where readings come so seldom that a restart is smeared over them."""
    apart_s = interval_of(recording)
    if apart_s <= 2 * STEP_S:
        return []
    note = f"readings come every {apart_s:g} s, so what a restart does is smeared"
    return [f"{note}; record one every {STEP_S:g} s"]


def _settled(read: Readings, starts: list[int]) -> Flags:
    """Steps with all readings, away from restarts, changes of the instances and the beginning."""
    measured = ~(np.isnan(read.cpu_share) | np.isnan(read.instances)) & read.load_was_read
    measured &= read.instances > LEAST_INSTANCES
    wait = round(SETTLES_S / read.step_s)
    measured[:wait] = False
    changes = np.flatnonzero(lasting_changes(read.instances, read.dip_steps))
    for start in (*starts, *changes.tolist()):
        measured[max(0, start - 4) : start + wait] = False
    return measured


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
