"""The autoscaler of the Flink Kubernetes operator (apache/flink-kubernetes-operator)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

from include.controllers.autoscalers.base import Autoscaler, Recommendation, target_of
from include.controllers.autoscalers.rates import Paths, ratio
from include.controllers.base import Gauge
from include.model.observation import Observation

Reading = Mapping[str, tuple[int, int, float]]
"""By operator: items completed since the run began, items that wait, share of the busiest."""


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


@dataclass(frozen=True, slots=True)
class FlinkMemory:
    """When something changed last (the first look, at the start), the readings of the metrics
    window, scale-downs that wait, and when operators whose last change was a scale-up had it, with
    the instances they got."""

    changed_s: float = -1.0
    window: tuple[tuple[float, Reading], ...] = ()
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

    watches = "true processing rate, items/s"
    may_be_zero = frozenset(
        {"boundary", "restart_s", "stabilise_s", "scale_down_after_s", "up_grace_s", "key_groups"}
    )

    def initial_memory(self) -> FlinkMemory:
        """The job has not been seen yet."""
        return FlinkMemory()

    def targets(
        self, memory: FlinkMemory, seen: Observation
    ) -> tuple[FlinkMemory, dict[str, Recommendation]]:
        """Collect, evaluate, and change everything at once if one operator is out of bounds."""
        now_s, before_s = seen.now_s, memory.changed_s
        changed_s = max(now_s if before_s < 0 else before_s, seen.job_started_s)
        memory = replace(memory, changed_s=changed_s, window=_since(memory.window, changed_s))
        if now_s < changed_s + self.stabilise_s:
            return replace(memory, window=()), {}
        recent = _since(memory.window, now_s - self.window_s)
        window = (*recent, (now_s, _read(seen)))
        memory = replace(memory, window=window)
        if now_s < changed_s + self.stabilise_s + self.window_s:
            return memory, {}
        vertices, backlog = self._evaluated(window, seen)
        delayed, targets, any_outside = dict(memory.delayed), dict[str, Recommendation](), False
        for name, one in vertices.items():
            if self._just_raised(one, memory.raised.get(name), now_s):
                continue
            wanted, outside = self._decided(name, one, now_s, delayed, backlog=backlog)
            if wanted != one.current:
                any_outside |= outside
                told = f"{name} can do {one.true_per_s:.2f} of {one.target_per_s:.2f} items/s"
                targets[name] = target_of(one.current, wanted, told)
        if not any_outside:
            return replace(memory, delayed=delayed), {}
        raised = {name: at for name, at in memory.raised.items() if name not in targets}
        for name, target in targets.items():
            if target.instances > vertices[name].current:
                raised[name] = (now_s, target.instances)
        return FlinkMemory(now_s, raised=raised), targets

    def _just_raised(self, one: Vertex, raised: tuple[float, int] | None, now_s: float) -> bool:
        """Whether a scale-down would undo a scale-up within its grace."""
        if raised is None or raised[1] != one.current or now_s >= raised[0] + self.up_grace_s:
            return False
        return self.wanted(one) < one.current

    def watched(self, memory: FlinkMemory, seen: Observation, operator: str) -> Gauge | None:
        """The true rate against its bounds, from the window before this look."""
        vertices, backlog = self._evaluated(memory.window, seen)
        one = vertices.get(operator)
        if one is None or math.isinf(one.true_per_s):
            return None
        return Gauge(one.true_per_s, *self.bounds_per_s(one, backlog=backlog))

    def _decided(
        self,
        name: str,
        one: Vertex,
        now_s: float,
        delayed: dict[str, Delayed],
        *,
        backlog: bool,
    ) -> tuple[int, bool]:
        """Instances, and whether the operator is out of its bounds; ``delayed`` keeps up."""
        wanted = self.wanted(one)
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

    def _evaluated(
        self, window: tuple[tuple[float, Reading], ...], seen: Observation
    ) -> tuple[dict[str, Vertex], bool]:
        """``ScalingMetricEvaluator``: operators that were read, and whether one is far behind."""
        read = {name: _over(window, name) for name in sorted(seen.operators)}
        known = {name: one for name, one in read.items() if one is not None}
        ingested = {name: max(0.0, in_s + lag_s) for name, (in_s, lag_s, _) in known.items()}
        entries = {name: ingested[name] for name in self._paths.entries if name in ingested}
        sources = self._paths.source_rates(entries)
        target = self._paths.propagated(sources, ingested)
        lag = {name: float(seen.operators[name].waiting_items) for name in entries}
        catch_up = self._catch_up(lag)
        vertices = {
            name: Vertex(
                current=len(seen.serving(name)),
                target_per_s=target[name],
                catch_up_per_s=catch_up.get(name, 0.0),
                true_per_s=in_s / busy if in_s > 0 and busy > 0 else math.inf,
            )
            for name, (in_s, _, busy) in known.items()
            if seen.serving(name) and name in target
        }
        backlog = any(lag[name] > self.backlog_lag_s * known[name][0] for name in entries)
        return vertices, backlog

    def _catch_up(self, lag: Mapping[str, float]) -> dict[str, float]:
        """What has to be done beside the input to work off the lag of the entries in time."""
        rates = {name: items / self.catch_up_s for name, items in lag.items()}
        for name in self._paths.order:
            if name not in self._paths.entries:
                edges = self._paths.inbound[name]
                rates[name] = sum(rates.get(edge.origin, 0.0) * ratio(edge) for edge in edges)
        return rates

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self.setting.topology)

    def capacity_per_s(self, one: Vertex, share: float, *, restart: bool) -> float:
        """``getTargetProcessingCapacity``: a whole number of items per second."""
        share = min(1.0, max(0.0, share))
        if share == 0:
            return math.inf
        again = one.target_per_s * self.restart_s / self.catch_up_s if restart else 0.0
        return math.floor(one.catch_up_per_s + again + one.target_per_s / share + 0.5)

    def wanted(self, one: Vertex) -> int:
        """``JobVertexScaler``: instances times the factor, within its limits, rounded up."""
        target = self.capacity_per_s(one, self.target_share, restart=True)
        factor = min(max(target / one.true_per_s, 1 - self.most_down), 1 + self.most_up)
        lowest = min(one.current, self.min_instances)
        highest = max(one.current, self.max_instances)
        if self.key_groups:
            highest = min(highest, self.key_groups)
        return self._aligned(min(max(lowest, math.ceil(factor * one.current)), highest), highest)

    def _aligned(self, instances: int, highest: int) -> int:
        """``JobVertexScaler.scale``: the next number of which each gets as many key groups."""
        upward = range(instances, min(self.key_groups // 2, highest) + 1)
        return next((one for one in upward if self.key_groups % one == 0), instances)

    def bounds_per_s(self, one: Vertex, *, backlog: bool) -> tuple[float, float]:
        """``computeProcessingRateThresholds``: up below the first, down above the second."""
        upper = 1.0 if backlog else self.target_share + self.boundary
        lower = 0.0 if backlog else self.target_share - self.boundary
        return (
            self.capacity_per_s(one, upper, restart=False),
            self.capacity_per_s(one, lower, restart=True),
        )


def _since(
    window: tuple[tuple[float, Reading], ...], start_s: float
) -> tuple[tuple[float, Reading], ...]:
    return tuple(one for one in window if one[0] >= start_s)


def _read(seen: Observation) -> Reading:
    return {
        name: (one.completed_in_all, one.waiting_items, one.busiest_share)
        for name, one in sorted(seen.operators.items())
        if one.completed_in_all is not None and one.busiest_share is not None
    }


def _over(
    window: tuple[tuple[float, Reading], ...], name: str
) -> tuple[float, float, float] | None:
    """Input and growth of the lag per second, and the mean share of the busiest, over the window;
    None with less than two readings."""
    readings = [(time_s, of[name]) for time_s, of in window if name in of]
    if len(readings) < 2:
        return None
    (first_s, (done, lag, _)), (last_s, (done_now, lag_now, _)) = readings[0], readings[-1]
    since_s = last_s - first_s
    busy = fmean(share for _, (_, _, share) in readings)
    return (done_now - done) / since_s, (lag_now - lag) / since_s, busy
