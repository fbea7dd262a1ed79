"""The autoscaler of the Flink Kubernetes operator (apache/flink-kubernetes-operator)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean

from include.controllers.autoscalers.base import (
    Autoscaler,
    Recommendation,
    min_above_max,
    target_of,
)
from include.controllers.autoscalers.key_groups import Alignment, Scaling, scaled
from include.controllers.autoscalers.rates import ratio
from include.controllers.base import Gauge
from include.model.decision import Reason, Why
from include.model.errors import unknown_name
from include.model.observation import Observation

Reading = Mapping[str, tuple[int, int, float]]
"""By operator: items completed since the run began, items that wait, share of the busiest."""

Window = tuple[tuple[float, Reading], ...]
"""When something was read, and what."""

ALIGNMENTS: Mapping[str, Alignment] = {
    **dict.fromkeys(("1.6", "1.7", "1.8", "1.9"), Alignment.HALF),
    "1.10": Alignment.DOWN,
    **dict.fromkeys(("1.11", "1.12", "1.13", "1.14"), Alignment.EVEN),
    "1.15": Alignment.DIRECTED,
    "main": Alignment.BALANCED,
}
"""By version of the operator; ``main`` is 6e9caeb, after FLINK-39306 and FLIP-586."""

DelayedTarget = tuple[float, int, bool]
"""When, how many instances, and whether the utilisation was outside its bounds."""


@dataclass(frozen=True, slots=True)
class Delayed:
    """Scale-downs of one operator that wait (``DelayedScaleDown``)."""

    first_s: float
    recommended: tuple[DelayedTarget, ...] = ()
    """Falling from the first to the last, so the first is the highest."""

    def with_one(self, now_s: float, instances: int, *, outside: bool) -> Delayed:
        """One more; those that ask for no more than it are forgotten."""
        kept = tuple(one for one in self.recommended if one[1] > instances)
        return Delayed(self.first_s, (*kept, (now_s, instances, outside)))

    def highest_since(self, start_s: float) -> DelayedTarget:
        """The highest of those that are not older. The latest is always among them."""
        return next(one for one in self.recommended if one[0] >= start_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """What is known of an operator over the metrics window. Rates are items per second."""

    current: int
    target_per_s: float
    catch_up_per_s: float
    true_per_s: float
    """Of all instances together; infinite while nothing came in."""
    busiest_share: float = math.nan


@dataclass(frozen=True, slots=True)
class FlinkMemory:
    """When something changed last (the first look, at the start), the readings of the metrics
    window, scale-downs that wait, and when operators whose last change was a scale-up had it, with
    the instances they got."""

    changed_s: float = -1.0
    window: Window = ()
    delayed: Mapping[str, Delayed] = field(default_factory=dict)
    raised: Mapping[str, tuple[float, int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Flink(Autoscaler):
    """Parallelism by true processing rates, averaged over a window of metrics.

    After a change, or a restart of the job, it reads nothing for ``stabilise_s`` and decides
    nothing until it has read for another ``window_s``. A scale-down waits ``scale_down_after_s``
    and then takes the highest recommendation of that time. An entry of the topology is a source to
    it, what waits there its lag; lag of more than ``backlog_lag_s`` of input stops scale-downs.

    Utilisation is held at ``target_share``, and nothing is done within ``boundary`` of it. What
    waits shall be worked off in ``catch_up_s``, and so shall what comes in during a restart of
    ``restart_s``. One step multiplies by 1 - ``most_down`` to 1 + ``most_up``.

    With ``key_groups`` (``pipeline.max-parallelism``) there are at most so many instances, and up
    to half of them a number that divides them, as operators up to 1.9 choose it; with 0, any.

    ``version`` is that of the operator in what changed with it: the true rate and the alignment.
    Up to 1.9 the ``source_partitions`` of a source bound its key groups, since 1.10 it is aligned
    to them. Since 1.8 only operators behind a hash (here: stateful ones) and sources are aligned,
    since 1.11 with ``maximise_utilisation`` not only to divisors. ``utilization_min`` and
    ``utilization_max`` (since 1.11) come before ``boundary`` where they are set.

    Up to 1.9 the operator had no such wait (0): an operator that was scaled up last kept its
    instances for ``up_grace_s`` (3600 there; ``detectImmediateScaleDownAfterScaleUp``).
    """

    target_share: float = 0.7
    boundary: float = 0.3
    catch_up_s: float = 1800.0
    restart_s: float = 300.0
    most_down: float = 0.6
    most_up: float = 100_000.0
    min_instances: int = 1
    max_instances: int = 200
    key_groups: int = 0
    interval_s: float = 60.0
    stabilise_s: float = 300.0
    window_s: float = 900.0
    scale_down_after_s: float = 3600.0
    up_grace_s: float = 0.0
    backlog_lag_s: float = 300.0
    version: str = "1.7"
    source_partitions: int = 0
    maximise_utilisation: bool = False
    utilization_min: float = math.nan
    utilization_max: float = math.nan

    watches = "true processing rate, items/s"
    may_be_zero = frozenset(
        {
            "boundary",
            "catch_up_s",
            "restart_s",
            "stabilise_s",
            "scale_down_after_s",
            "up_grace_s",
            "key_groups",
            "source_partitions",
            "utilization_min",
        }
    )

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.version not in ALIGNMENTS:
            yield unknown_name("version", self.version, ALIGNMENTS)
        yield from min_above_max(self)

    def initial_memory(self) -> FlinkMemory:
        return FlinkMemory()

    def waits(self, memory: FlinkMemory, seen: Observation) -> Why | None:
        changed_s = self._changed_s(memory, seen)
        if seen.now_s < changed_s + self.stabilise_s:
            sentence = f"it lets a change settle for {self.stabilise_s:g} s"
        elif seen.now_s < changed_s + self.stabilise_s + self.window_s:
            sentence = f"its window of {self.window_s:g} s is not full yet"
        else:
            return None
        return Why(Reason.SETTLING, sentence)

    def targets(
        self, memory: FlinkMemory, seen: Observation
    ) -> tuple[FlinkMemory, dict[str, Recommendation]]:
        """Collect, evaluate, and change everything at once if one operator is out of bounds."""
        now_s, changed_s = seen.now_s, self._changed_s(memory, seen)
        memory = replace(memory, changed_s=changed_s, window=_since(memory.window, changed_s))
        if now_s < changed_s + self.stabilise_s:
            return replace(memory, window=()), {}
        recent = _since(memory.window, now_s - self.window_s)
        window = (*recent, (now_s, _read(seen)))
        memory = replace(memory, window=window)
        if now_s < changed_s + self.stabilise_s + self.window_s:
            return memory, {}
        vertices, backlog = self._evaluated(window, seen)
        delayed = dict(memory.delayed)
        free = {
            name: one
            for name, one in vertices.items()
            if not self._just_raised(name, one, memory.raised.get(name), now_s)
        }
        targets = dict[str, Recommendation]()
        for name, wanted in self.summary(free, now_s, delayed, backlog=backlog).items():
            one = vertices[name]
            detail = f"{name} can do {one.true_per_s:.2f} of {one.target_per_s:.2f} items/s"
            targets[name] = target_of(one.current, wanted, detail)
        if not targets:
            return replace(memory, delayed=delayed), {}
        raised = {name: at for name, at in memory.raised.items() if name not in targets}
        for name, target in targets.items():
            if target.instances > vertices[name].current:
                raised[name] = (now_s, target.instances)
        return FlinkMemory(now_s, raised=raised), targets

    def summary(
        self,
        vertices: Mapping[str, Vertex],
        now_s: float,
        delayed: dict[str, Delayed],
        *,
        backlog: bool,
    ) -> dict[str, int]:
        """``computeScalingSummary``: instances of those that change; nobody changes unless one is
        out of its bounds. ``delayed`` keeps up."""
        changes, any_outside = dict[str, int](), False
        for name, one in vertices.items():
            wanted, outside = self.decided(name, one, now_s, delayed, backlog=backlog)
            if wanted != one.current:
                changes[name] = wanted
                any_outside |= outside
        return changes if any_outside else {}

    def _just_raised(
        self, name: str, one: Vertex, raised: tuple[float, int] | None, now_s: float
    ) -> bool:
        """Whether a scale-down would undo a scale-up within its grace."""
        if raised is None or raised[1] != one.current or now_s >= raised[0] + self.up_grace_s:
            return False
        return self.wanted(name, one) < one.current

    def _changed_s(self, memory: FlinkMemory, seen: Observation) -> float:
        before_s = memory.changed_s
        return max(seen.now_s if before_s < 0 else before_s, seen.job_started_s)

    def watched(self, memory: FlinkMemory, seen: Observation, operator: str) -> Gauge | None:
        """The true rate against its bounds, from the window before this look."""
        vertices, backlog = self._evaluated(memory.window, seen)
        one = vertices.get(operator)
        if one is None or math.isinf(one.true_per_s):
            return None
        return Gauge(one.true_per_s, *self.bounds_per_s(one, backlog=backlog))

    def decided(
        self,
        name: str,
        one: Vertex,
        now_s: float,
        delayed: dict[str, Delayed],
        *,
        backlog: bool,
    ) -> tuple[int, bool]:
        """Instances, and whether the operator is out of its bounds; ``delayed`` keeps up."""
        wanted = self.wanted(name, one)
        up_below, down_above = self.bounds_per_s(one, backlog=backlog)
        outside = one.true_per_s < up_below or one.true_per_s > down_above
        if wanted >= one.current:
            delayed.pop(name, None)
            return wanted, outside
        if self.scale_down_after_s == 0:
            return wanted, outside
        waits = delayed.get(name, Delayed(now_s)).with_one(now_s, wanted, outside=outside)
        delayed[name] = waits
        start_s = now_s - self.scale_down_after_s
        if start_s < waits.first_s:
            return one.current, outside
        _, wanted, outside = waits.highest_since(start_s)
        return wanted, outside

    def _evaluated(self, window: Window, seen: Observation) -> tuple[dict[str, Vertex], bool]:
        lag = {name: float(one.waiting_items) for name, one in seen.operators.items()}
        current = {name: len(seen.serving(name)) for name in lag}
        return self.evaluated(window, lag, current)

    def evaluated(
        self, window: Window, lags: Mapping[str, float], current: Mapping[str, int]
    ) -> tuple[dict[str, Vertex], bool]:
        """``ScalingMetricEvaluator``: operators that were read, and whether one is far behind."""
        read = {name: _over(window, name) for name in sorted(current)}
        measured = {name: one for name, one in read.items() if one is not None}
        ingested = {name: max(0.0, in_s + lag_s) for name, (in_s, lag_s, _) in measured.items()}
        entries = {name: ingested[name] for name in self._paths.entries if name in ingested}
        sources = self._paths.source_rates(entries)
        target = self._paths.propagated(sources, ingested)
        lag = {name: lags[name] for name in entries}
        catch_up = self._catch_up(lag)
        vertices = {
            name: Vertex(
                current=current[name],
                target_per_s=target[name],
                catch_up_per_s=catch_up.get(name, 0.0),
                true_per_s=self.true_per_s(_readings(window, name)),
                busiest_share=busy,
            )
            for name, (_, _, busy) in measured.items()
            if current[name] and name in target
        }
        return vertices, any(self.is_backlog(lag[name], measured[name][0]) for name in entries)

    def is_backlog(self, lag: float, in_per_s: float) -> bool:
        """``isProcessingBacklog`` of one source."""
        return lag > self.backlog_lag_s * in_per_s

    def true_per_s(self, readings: Sequence[tuple[float, tuple[int, int, float]]]) -> float:
        """Of at least two readings: rate by busy time, 1.6 the mean of those of each reading.

        FLINK-39306 takes the mean of the rates of the readings as input, before the input of the
        whole window is taken. A rate here is that since the reading before.
        """
        pairs = [
            ((now[0] - last[0]) / (now_s - last_s), now[2])
            for (last_s, last), (now_s, now) in pairwise(readings)
        ]
        if self.version == "1.6":
            return fmean(true_rate(in_s, busy) for in_s, busy in pairs)
        busy = fmean(of[2] for _, of in readings)
        if self.version == "main":
            return true_rate(fmean(in_s for in_s, _ in pairs), busy)
        (first_s, first), (last_s, last) = readings[0], readings[-1]
        return true_rate((last[0] - first[0]) / (last_s - first_s), busy)

    def _catch_up(self, lag: Mapping[str, float]) -> dict[str, float]:
        """What has to be done beside the input to work off the lag of the entries in time."""
        rates = {
            name: items / self.catch_up_s if self.catch_up_s else 0.0 for name, items in lag.items()
        }
        for name in self._paths.order:
            if name not in self._paths.entries:
                edges = self._paths.inbound[name]
                rates[name] = sum(rates.get(edge.origin, 0.0) * ratio(edge) for edge in edges)
        return rates

    def capacity_per_s(self, one: Vertex, share: float, *, restart: bool) -> float:
        """``getTargetProcessingCapacity``: a whole number of items per second."""
        share = min(1.0, max(0.0, share))
        if share == 0:
            return math.inf
        restart = restart and self.catch_up_s > 0
        restart_per_s = one.target_per_s * self.restart_s / self.catch_up_s if restart else 0.0
        return math.floor(one.catch_up_per_s + restart_per_s + one.target_per_s / share + 0.5)

    def wanted(self, name: str, one: Vertex) -> int:
        """``JobVertexScaler``: instances times the factor, within its limits, aligned."""
        target = self.capacity_per_s(one, self.target_share, restart=True)
        groups = self.key_groups
        partitions = self.source_partitions if name in self._paths.entries else 0
        if partitions and ALIGNMENTS[self.version] is Alignment.HALF:
            groups, partitions = min(groups or partitions, partitions), 0  # updateMaxParallelism
        scaling = Scaling(
            current=one.current,
            factor=min(max(target / one.true_per_s, 1 - self.most_down), 1 + self.most_up),
            lowest=min(one.current, self.min_instances),
            highest=max(one.current, self.max_instances),
            key_groups=groups,
            partitions=partitions,
        )
        return scaled(scaling, self._alignment(name), maximise=self.maximise_utilisation)

    def _alignment(self, name: str) -> Alignment:
        """Since 1.8 of operators behind a hash and of sources, since 1.10 with partitions."""
        alignment = ALIGNMENTS[self.version]
        source = name in self._paths.entries
        if self.version not in ("1.6", "1.7") and not (
            self.setting.topology.operator[name].stateful
            or (source and (alignment is Alignment.HALF or self.source_partitions > 0))
        ):
            return Alignment.OFF
        return alignment

    def bounds_per_s(self, one: Vertex, *, backlog: bool) -> tuple[float, float]:
        """``computeProcessingRateThresholds``: up below the first, down above the second."""
        upper, lower = self.utilization_max, self.utilization_min
        upper = self.target_share + self.boundary if math.isnan(upper) else upper
        lower = self.target_share - self.boundary if math.isnan(lower) else lower
        if backlog:
            upper, lower = 1.0, 0.0
        return (
            self.capacity_per_s(one, upper, restart=False),
            self.capacity_per_s(one, lower, restart=True),
        )


def true_rate(in_per_s: float, busy_share: float) -> float:
    """Items per second if the operator were always busy; infinite while nothing came in."""
    return in_per_s / busy_share if in_per_s > 0 and busy_share > 0 else math.inf


def _since(window: Window, start_s: float) -> Window:
    return tuple(one for one in window if one[0] >= start_s)


def _readings(window: Window, name: str) -> list[tuple[float, tuple[int, int, float]]]:
    return [(time_s, of[name]) for time_s, of in window if name in of]


def _read(seen: Observation) -> Reading:
    return {
        name: (one.completed_in_all, one.waiting_items, one.busiest_share)
        for name, one in sorted(seen.operators.items())
        if one.completed_in_all is not None and one.busiest_share is not None
    }


def _over(window: Window, name: str) -> tuple[float, float, float] | None:
    """Input and growth of the lag per second, and the mean share of the busiest, over the window;
    None with less than two readings."""
    readings = _readings(window, name)
    if len(readings) < 2:
        return None
    (first_s, (done, lag, _)), (last_s, (done_now, lag_now, _)) = readings[0], readings[-1]
    since_s = last_s - first_s
    busy = fmean(share for _, (_, _, share) in readings)
    return (done_now - done) / since_s, (lag_now - lag) / since_s, busy
