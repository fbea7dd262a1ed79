"""A calibration of the simulator from runs on the testbed ``flink``, and what it has seen.

- Service times are what was between the begin and the end of an item at an operator, and what an
  instance takes from there to the begin of the next item, where that one is waiting already.
- Gaps of rescales are those of the measured table ``rescale`` that a controller asked for, without
  the checkpoint, whose time follows from what instances do: one is drawn each time. If they grow
  with the instances that run after them, by the Theil-Sen slope (Sen 1968) and beyond its interval
  of 95 %, that is taken out of each and given by itself.
- The room in front of an instance is how many items there were in front of one that its source held
  back until it had room: one that was sent late, after a pause, and as its instance began another.
  Divided by the number of buffers on the way, its median is what a buffer holds, of any operator,
  for items are alike. That is looked at while an operator has one instance, for otherwise an item
  may be held back for another one, and not behind other operators, which cannot be told from ones
  that had room.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import theilslopes

from include.experiment.run import Run
from include.model.errors import SpecError, StoreError
from include.results.tables.measured import measured_rows
from include.runs.stages import store_of
from include.studies.live.calibration import boots

F64 = NDArray[np.float64]
LATE_US = 1_000_000
"""A source that gives an item so much later than it was due had no room for it."""
PAUSE_US, AT_ONCE_US = 3_000, 2_000
"""It was this item that there was no room for, if none was sent for so long before it, and its
instance had begun another just before."""
LEAST_ROWS = 50
"""With fewer items that found no room nothing is said of the room."""
INDENT = " " * 4


@dataclass(frozen=True, slots=True)
class FlinkEstimate:
    """A value and the interval that it is in with 95 %."""

    value: float
    low: float
    high: float
    rows: int

    def __str__(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g}, of {self.rows}"


USUAL_BUFFER_ITEMS = FlinkEstimate(5.0, 5.0, 5.0, 0)
"""If too few items found no room: what has been seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkFit:
    """What some runs say. Service times in ms, by operator."""

    runs: tuple[str, ...]
    service_ms: Mapping[str, FlinkEstimate]
    service_cv: FlinkEstimate
    buffer_items: FlinkEstimate
    """What a buffer holds; of no rows if none was full."""
    gap_s: tuple[float, ...]
    """Without the checkpoint, and without what grows with the instances."""
    per_instance_s: FlinkEstimate
    gap_median_s: FlinkEstimate
    gap_p90_s: FlinkEstimate
    undone_items: FlinkEstimate
    """Items that were done again, in a rescale."""
    boot_s: tuple[float, float]
    release_s: tuple[float, float]


def fit(runs: Sequence[Run], root: Path) -> FlinkFit:
    """Fit to complete runs of one topology, each with all of its items.

    Raises SpecError for other runs, StoreError when nothing was rescaled there.
    """
    topology = runs[0].topology
    problems = [
        f"{run.spec.run_id} has another topology than {runs[0].spec.run_id}; fit it by itself"
        for run in runs
        if run.topology.edges != topology.edges
    ] + [
        f"{run.spec.run_id} has a sample of its items; measure it with sample_every_items: 1"
        for run in runs
        if run.calibration["sample_every_items"] != 1
    ]
    if problems:
        raise SpecError("fit-flink", problems)
    items = [_items(run, root) for run in runs]
    rescales = [measured_rows(store_of(run.spec, root), "rescale") for run in runs]
    gaps_s, checkpoints_s, after, undone = (
        np.concatenate([table[name].to_numpy().astype(float) for table in rescales])
        for name in ("gap_s", "checkpoint_s", "instances_after", "reprocessed_items")
    )
    asked = np.concatenate([table["cause"].to_numpy() == "controller" for table in rescales])
    measured = ~np.isnan(gaps_s) & asked & (checkpoints_s > 0)
    gaps_s, after, undone = gaps_s[measured], after[measured], undone[measured]
    if not gaps_s.size:
        raise StoreError("no run has a rescale whose gap was measured; take runs that were scaled")
    starts_s = (gaps_s - checkpoints_s[measured]).clip(0)
    per_instance = _slope(starts_s, after)
    rest_s = (starts_s - per_instance.value * after).clip(0)
    sources_of = Counter(edge.target for edge in topology.edges if edge.origin in topology.source)
    fed_by_sources = sources_of.keys() - {
        edge.target for edge in topology.edges if edge.origin not in topology.source
    }
    service_ms, variation, weights = {}, [], []
    for name in topology.operator_names:
        took_ms = np.concatenate([one[name].took_ms for one in items if name in one])
        between_ms = np.concatenate([one[name].between_ms for one in items if name in one])
        if took_ms.size > 1:
            rest_ms = float(np.median(between_ms)) if between_ms.size else 0.0  # but for restarts
            service_ms[name] = _mean(took_ms + rest_ms)
            variation.append(float(took_ms.std() / took_ms.mean()))
            weights.append(float(took_ms.sum()))
    held_back = [
        by_operator[name].per_buffer(sources_of[name])
        for by_operator in items
        for name in sorted(fed_by_sources & by_operator.keys())
    ]
    per_buffer = np.concatenate([np.zeros(0), *held_back])
    full = per_buffer.size >= LEAST_ROWS
    cv = float(np.average(variation, weights=weights))
    return FlinkFit(
        runs=tuple(f"{run.spec.experiment}/{run.spec.run_id}" for run in runs),
        service_ms=service_ms,
        service_cv=FlinkEstimate(cv, min(variation), max(variation), len(variation)),
        buffer_items=_quantile(per_buffer, 0.5) if full else USUAL_BUFFER_ITEMS,
        gap_s=tuple(float(gap_s) for gap_s in np.sort(rest_s).round(2)),
        per_instance_s=per_instance,
        gap_median_s=_quantile(gaps_s, 0.5),
        gap_p90_s=_quantile(gaps_s, 0.9),
        undone_items=_quantile(undone, 0.5),
        boot_s=_boots(runs, root),
        release_s=_releases(runs, root),
    )


@dataclass(frozen=True, slots=True)
class _Items:
    """The items of an operator in a run: how long each took, how many were in front of it in the
    buffers of its instance when it was sent, and whether it was sent because there was room again.
    """

    took_ms: F64
    between_ms: F64
    """From the end of an item to the begin of the next one of its instance, if that waited."""
    in_front: F64
    held_back: NDArray[np.bool_]
    alone: NDArray[np.bool_]
    """Whether no other instance of the operator had items since the job was started last."""

    def per_buffer(self, senders: int) -> F64:
        """Of those held back: the items that there was room for, it among them, by buffer."""
        buffers = 3 * senders + 1  # QueueingNetwork, with one that receives
        return np.asarray((self.in_front[self.held_back & self.alone] + 1) / buffers)


def _items(run: Run, root: Path) -> dict[str, _Items]:
    names = ("time_s", "operator", "instance", "duration_ms", "wait_ms", "age_ms")
    rows = measured_rows(store_of(run.spec, root), "processing_duration", names)
    operator, instance = (np.asarray(rows[name].to_pylist()) for name in names[1:3])
    done_s, duration_ms, wait_ms, age_ms = (rows[n].to_numpy() for n in (names[0], *names[3:]))
    # In whole microseconds: what is sent as another one begins finds that one gone.
    sent_us = np.rint(done_s * 1e6 - duration_ms * 1e3).astype(np.int64)
    started_us = sent_us + np.rint(wait_ms * 1e3).astype(np.int64)
    took_us = np.rint((duration_ms - wait_ms) * 1e3).astype(np.int64)
    late = (age_ms - duration_ms) * 1e3 > LATE_US
    ups_us = np.sort(measured_rows(store_of(run.spec, root), "rescale")["up_s"].to_numpy()) * 1e6
    start = np.searchsorted(ups_us, started_us)
    items = {}
    for name in np.unique(operator).tolist():
        own = np.flatnonzero(operator == name)
        own = own[np.argsort(sent_us[own], kind="stable")]
        paused = np.diff(sent_us[own], prepend=sent_us[own[0]]) > PAUSE_US
        in_front, since_us = np.zeros(len(own)), np.zeros(len(own))
        between = [np.zeros(0)]
        for one in np.unique(instance[own]).tolist():
            at = np.flatnonzero(instance[own] == one)
            by_start = np.argsort(started_us[own[at]], kind="stable")
            begun_us, sent = started_us[own[at]][by_start], sent_us[own[at]]
            begun = np.searchsorted(begun_us, sent, side="right")
            place = np.empty(len(at))
            place[by_start] = np.arange(len(at))
            in_front[at] = place - begun
            sent_us_of, done_us = sent[by_start], begun_us + took_us[own[at]][by_start]
            waited = sent_us_of[1:] < done_us[:-1]
            between.append((begun_us[1:] - done_us[:-1])[waited] / 1000)
            since_us[at] = np.where(begun > 0, sent - begun_us[begun - 1], AT_ONCE_US)
        pairs = np.unique(
            np.stack([start[own], np.unique(instance[own], return_inverse=True)[1]]), axis=1
        )
        items[name] = _Items(
            alone=np.bincount(pairs[0])[start[own]] == 1,
            took_ms=took_us[own] / 1000,
            between_ms=np.concatenate(between),
            in_front=in_front.clip(0),
            held_back=late[own] & paused & (since_us < AT_ONCE_US),
        )
    return items


def _boots(runs: Sequence[Run], root: Path) -> tuple[float, float]:
    """From the order of a host until it is up: the middle half of those that were leased."""
    took_s: list[float] = []
    for store in (store_of(run.spec, root) for run in runs):
        events = measured_rows(store, "event").to_pylist()
        activities = measured_rows(store, "scaling_activity").to_pylist()
        took_s += boots(events, [row for row in activities if row["time_s"] > 0])
    if not took_s:
        low, high = runs[0].calibration["host_boot_s"]
        return float(low), float(high)
    return _middle_half(took_s)


def _releases(runs: Sequence[Run], root: Path) -> tuple[float, float]:
    """From the release of a host, or the begin of the last checkpoint of what ran there, until its
    lease ends: the middle half. Without any, none is known and it is nothing."""
    took_s = []
    for run in runs:
        store = store_of(run.spec, root)
        ended_s = {row["host"]: row["ended_s"] for row in measured_rows(store, "lease").to_pylist()}
        rescales = measured_rows(store, "rescale").to_pylist()
        for row in measured_rows(store, "scaling_activity").to_pylist():
            end_s = ended_s.get(row["host"], 0.0)
            if row["activity"] == "host_released" and end_s >= row["time_s"]:
                begins_s = [
                    rescale["down_s"] - rescale["checkpoint_s"]
                    for rescale in rescales
                    if rescale["up_s"] >= row["time_s"] and rescale["asked_s"] <= end_s
                ]
                took_s.append(max(0.0, end_s - max([row["time_s"], *begins_s])))
    return _middle_half(took_s or [0.0])


def _middle_half(took_s: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(took_s, [0.25, 0.75])
    return round(float(low), 2), round(float(high), 2)


def _mean(values: F64) -> FlinkEstimate:
    half = 1.96 * float(values.std()) / np.sqrt(len(values))
    mean = float(values.mean())
    return FlinkEstimate(mean, mean - half, mean + half, len(values))


def _slope(gaps_s: F64, instances: F64) -> FlinkEstimate:
    """What an instance adds to a gap; 0 where that may be nothing."""
    if np.ptp(instances) == 0:
        return FlinkEstimate(0.0, 0.0, 0.0, len(gaps_s))
    slope, _, low, high = theilslopes(gaps_s, instances, 0.95)
    value = float(slope) if low > 0 else 0.0
    return FlinkEstimate(value, float(low), float(high), len(gaps_s))


def _quantile(values: F64, share: float) -> FlinkEstimate:
    """With the interval that the ranks of the values give (binomial, as a normal distribution)."""
    half = 1.96 * np.sqrt(share * (1 - share) / len(values))
    value, low, high = np.quantile(values, np.clip([share, share - half, share + half], 0, 1))
    return FlinkEstimate(float(value), float(low), float(high), len(values))


def as_yaml(fitted: FlinkFit, memory_factor: float) -> str:
    """A calibration file of the simulator, with what it has seen and how sure it is."""
    width = max(map(len, fitted.service_ms))
    gaps = ", ".join(f"{gap_s:g}" for gap_s in fitted.gap_s)
    lines = [
        "# The simulator's parameters for a job on Flink, written by `tidebench fit-flink` from",
        *(f"#   {run}" for run in fitted.runs),
        "# It has seen these runs and no others. Intervals are those of 95 %.",
        "service_ms:",
        *(f"  {n:<{width}}: {e.value:<8.4g} # {e}" for n, e in fitted.service_ms.items()),
        f"service_cv: {fitted.service_cv.value:.3f}  # by operator {fitted.service_cv}",
        "latency_ms: 0",
        f"memory_factor: {memory_factor:g}",
        f"host_boot_s: [{fitted.boot_s[0]:g}, {fitted.boot_s[1]:g}]",
        f"host_release_s: [{fitted.release_s[0]:g}, {fitted.release_s[1]:g}]",
        "instance_start_s: [0, 0]",
        "image_pull_s: [0, 0]",
        "drain_s: 0",
        "sample_every_items: 1",
        "cpu_noise: 0",
        f"buffer_items:  # of each buffer, {fitted.buffer_items}",
        *(f"  {name:<{width}}: {fitted.buffer_items.value:.3g}" for name in fitted.service_ms),
        f"# {len(fitted.gap_s)} gaps. With the checkpoint they have",
        f"# a median of {fitted.gap_median_s.value:.2f} s ({fitted.gap_median_s}),",
        f"# a 90th percentile of {fitted.gap_p90_s.value:.2f} s ({fitted.gap_p90_s});",
        f"# items done again, median {fitted.undone_items.value:.0f} ({fitted.undone_items}).",
        "rescale:",
        "  packs: true",
        f"  per_instance_s: {fitted.per_instance_s.value:.3g}  # {fitted.per_instance_s}",
        "  gap_s:  # after the checkpoint",
        *textwrap.wrap(f"[{gaps}]", 95, initial_indent=INDENT, subsequent_indent=f"{INDENT} "),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"
