"""Druid's cost-based autoscaler of streaming ingestion (apache/druid, ``indexing-service``,
``seekablestream/supervisor/autoscaler``: CostBasedAutoScaler, CostBasedAutoScalerConfig and
WeightedCostFunction; pull requests #18819, #18976, #19378, #19562).

A supervisor reads one stream with tasks; here every operator is one, and its instances are tasks.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from include.controllers.autoscalers.base import (
    Autoscaler,
    Recommendation,
    min_above_max,
    target_of,
)
from include.controllers.autoscalers.rates import Counts, rates_since
from include.controllers.base import Gauge
from include.model.errors import unknown_name
from include.model.observation import Observation

LINEAR, U_SHAPED, SUBLINEAR = "18976", "19378", "19562"
VERSIONS = (LINEAR, U_SHAPED, SUBLINEAR)
"""By the pull request that brought the cost function. The first has the formula of #18819."""

AMPLIFICATION = 0.4
"""``LAG_AMPLIFICATION_MULTIPLIER``: how much the logarithm of the lag of a partition adds."""
UNDER_PENALTY, OVER_PENALTY = 2.0, 1.0
"""What an instance costs more that is never idle, and one that always is."""
EXPONENT = 0.32
"""``IDLE_SUBLINEARITY_EXPONENT`` of #19562: half the tasks are 1.25 times as busy."""
UNKNOWN_IDLE = 0.5
"""Idle ratio where no task has told one."""
STUCK_LAG_ITEMS = 10_000
"""``MAX_IDLENESS_PARTITION_LAG``: with more in a partition and no rate, tasks are stuck."""
COUNTS_BOUND = 2
"""``BOUNDARY_LIMIT_IN_PARTITIONS_PER_TASK``: so many candidates away where a bound is set."""
METER_S = 900.0
"""The moving average of a task's rate is that of a Dropwizard meter over 15 minutes."""
IDLE_LOOKS = 4
"""A consumer of Kafka averages its idle ratio over two samples of 30 s: four looks of 15 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamMetrics:
    """What is known of one stream (``CostMetrics``). ``rate_per_s`` is that of one task.

    ``idle_share`` is absent where no task has told one.
    """

    lag_items: float
    tasks: int
    partitions: int
    idle_share: float | None
    rate_per_s: float


@dataclass(frozen=True, slots=True)
class DruidMemory:
    """Counts of the last look; by operator the mean rate of an instance, the last busy shares and
    when it was scaled last. ``acts_s`` is when costs are compared next."""

    acts_s: float
    counts: Counts = field(default_factory=dict)
    rate_per_s: Mapping[str, float] = field(default_factory=dict)
    busy_shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    scaled_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Druid(Autoscaler):
    """As many instances as cost least: ``lag_weight`` times the seconds in which they would work
    off the lag, plus ``idle_weight`` times what their idleness costs.

    Every ``period_s`` it compares the counts that share out ``partitions``, and changes nothing
    until ``up_wait_s`` or ``down_wait_s`` after the last change. ``version`` says how idleness
    costs: by the idle seconds of a task of ``task_s`` ("18976", whose defaults were weights of
    0.25 and 0.75 and waits of 1800 s), or by how far the idle share is from ``optimal_idle``
    ("19378"; "19562" takes fewer tasks to be less busy than in proportion). With ``bounded_up`` or
    ``bounded_down`` only the next two counts are candidates. No task is taken to complete fewer
    than ``least_rate_per_s`` items per second, but for "18976".
    """

    interval_s: float = 15.0
    period_s: float = 600.0
    version: str = SUBLINEAR
    lag_weight: float = 0.4
    idle_weight: float = 0.6
    optimal_idle: float = 0.25
    up_wait_s: float = 600.0
    down_wait_s: float = 1800.0
    bounded_up: bool = False
    bounded_down: bool = True
    partitions: int = 100
    min_instances: int = 1
    max_instances: int = 100
    task_s: float = 3600.0
    least_rate_per_s: float = 1000.0

    watches = "cost of the instances there are"
    may_be_zero = frozenset({"lag_weight", "idle_weight", "up_wait_s", "down_wait_s"})

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.version not in VERSIONS:
            yield unknown_name("version", self.version, VERSIONS)
        if self.optimal_idle >= 1:
            yield f"optimal_idle must be a share below 1, got {self.optimal_idle}"
        yield from min_above_max(self)

    def initial_memory(self) -> DruidMemory:
        return DruidMemory(acts_s=self.period_s)

    def targets(
        self, memory: DruidMemory, seen: Observation
    ) -> tuple[DruidMemory, dict[str, Recommendation]]:
        """Meter at every look; compare costs once a period."""
        memory = self._metered(memory, seen)
        if seen.now_s < memory.acts_s:
            return memory, {}
        scaled_s, targets = dict(memory.scaled_s), dict[str, Recommendation]()
        for name in sorted(seen.operators):
            metrics = self._metrics(memory, seen, name)
            if metrics is None:
                continue
            wanted = self.clamped(metrics.tasks, self.cheapest(metrics))
            wait_s = self.up_wait_s if wanted > metrics.tasks else self.down_wait_s
            waits = name in scaled_s and seen.now_s - scaled_s[name] < wait_s
            if wanted == metrics.tasks or waits:
                continue
            scaled_s[name] = seen.now_s
            message = (
                f"{wanted} instances of {name} cost {self.cost(metrics, wanted):.4g}, "
                f"{metrics.tasks} cost {self.cost(metrics, metrics.tasks):.4g}"
            )
            targets[name] = target_of(metrics.tasks, wanted, message)
        acts_s = memory.acts_s + self.period_s * (1 + (seen.now_s - memory.acts_s) // self.period_s)
        return (
            DruidMemory(acts_s, memory.counts, memory.rate_per_s, memory.busy_shares, scaled_s),
            targets,
        )

    def watched(self, memory: DruidMemory, seen: Observation, operator: str) -> Gauge | None:
        """The cost of the instances there are against that of the cheapest count."""
        metrics = self._metrics(self._metered(memory, seen), seen, operator)
        if metrics is None:
            return None
        best = self.cost(metrics, self.cheapest(metrics))
        return Gauge(self.cost(metrics, metrics.tasks), high=best)

    def clamped(self, tasks: int, wanted: int) -> int:
        """Within the bounds of the instances, which a supervisor keeps whatever is cheapest."""
        return min(max(wanted, self.min_instances), self.max_instances) if wanted else tasks

    def cheapest(self, metrics: StreamMetrics) -> int:
        """``computeOptimalTaskCount``: the count of lowest cost; 0 where metrics are of no use."""
        if metrics.partitions <= 0 or metrics.tasks <= 0:
            return 0
        stuck = metrics.lag_items > STUCK_LAG_ITEMS * metrics.partitions
        if self.version != LINEAR and metrics.rate_per_s < 1 and stuck:
            return 0
        counts = self.candidates(metrics)
        # The first version knows no preference for the tasks there are: the fewest of equals.
        first = counts if self.version == LINEAR else [metrics.tasks, *counts]
        return min(first or [metrics.tasks], key=lambda count: self.cost(metrics, count))

    def candidates(self, metrics: StreamMetrics) -> Sequence[int]:
        """The counts that are compared, ascending."""
        bounds = (self.min_instances, self.max_instances)
        most_each = metrics.partitions // self.min_instances if self.version == LINEAR else None
        counts = shared_counts(metrics.partitions, *bounds, most_each)
        place = bisect.bisect_left(counts, metrics.tasks)
        if self.version == LINEAR or place == len(counts) or counts[place] != metrics.tasks:
            return counts
        first = max(0, place - COUNTS_BOUND) if self.bounded_down else 0
        end = place + COUNTS_BOUND + 1 if self.bounded_up else len(counts)
        return counts[first:end]

    def cost(self, metrics: StreamMetrics, proposed: int) -> float:
        """``WeightedCostFunction.computeCost``, in seconds; infinite where it makes no sense."""
        if proposed <= 0 or metrics.partitions <= 0:
            return math.inf
        if self.version == LINEAR:
            return self._linear_cost(metrics, proposed)
        rate_per_s = max(metrics.rate_per_s, self.least_rate_per_s)
        lag_s = amplified(metrics.lag_items, metrics.partitions) / (proposed * rate_per_s)
        idle = self._projected_idle(metrics, proposed)
        # What the proposed tasks could not do in their time is lag to come.
        overrun_s = max(0.0, -idle) * self.task_s
        idle_cost = u_shaped(min(1.0, max(0.0, idle)), proposed, self.optimal_idle)
        return self.lag_weight * (lag_s + overrun_s) + self.idle_weight * idle_cost

    def _linear_cost(self, metrics: StreamMetrics, proposed: int) -> float:
        if metrics.rate_per_s <= 0:
            return 0.01 if proposed == metrics.tasks else math.inf
        lag_s = metrics.lag_items / (proposed * metrics.rate_per_s)
        idle = min(1.0, max(0.0, self._projected_idle(metrics, proposed)))
        return self.lag_weight * lag_s + self.idle_weight * proposed * self.task_s * idle

    def _projected_idle(self, metrics: StreamMetrics, proposed: int) -> float:
        """The idle share of so many tasks; below 0 where they cannot do the work."""
        if metrics.idle_share is None:
            return UNKNOWN_IDLE
        if metrics.tasks <= 0 or proposed == metrics.tasks:
            return metrics.idle_share
        exponent = EXPONENT if self.version == SUBLINEAR else 1.0
        return 1 - (1 - metrics.idle_share) * math.pow(metrics.tasks / proposed, exponent)

    def _metered(self, memory: DruidMemory, seen: Observation) -> DruidMemory:
        counts, rates = rates_since(memory.counts, seen)
        means, shares = dict(memory.rate_per_s), dict(memory.busy_shares)
        for name, rate in rates.items():
            if rate.ready:
                each_per_s = rate.completed_per_s / rate.ready
                gain = 1 - math.exp(-rate.since_s / METER_S) if name in means else 1.0
                means[name] = means.get(name, 0.0) * (1 - gain) + gain * each_per_s
            if rate.busy_share is not None:
                shares[name] = (*shares.get(name, ()), rate.busy_share)[-IDLE_LOOKS:]
        return DruidMemory(memory.acts_s, counts, means, shares, memory.scaled_s)

    def _metrics(self, memory: DruidMemory, seen: Observation, name: str) -> StreamMetrics | None:
        tasks = len(seen.serving(name))
        if name not in seen.operators or name not in memory.rate_per_s or not tasks:
            return None
        busy = memory.busy_shares.get(name, ())
        return StreamMetrics(
            lag_items=seen.operators[name].waiting_items,
            tasks=tasks,
            partitions=self.partitions,
            idle_share=1 - sum(busy) / len(busy) if busy else None,
            rate_per_s=memory.rate_per_s[name],
        )


def shared_counts(
    partitions: int, least: int, most: int, most_each: int | None = None
) -> list[int]:
    """``computeValidTaskCounts``: as many tasks as share out the partitions with so many each, at
    most ``most_each``, within the bounds, ascending."""
    counts = {math.ceil(partitions / each) for each in range(1, (most_each or partitions) + 1)}
    return sorted(count for count in counts if least <= count <= most)


def amplified(lag_items: float, partitions: int) -> float:
    """Lag that counts for more than it is, by the logarithm of the lag of a partition."""
    if lag_items <= 0:
        return 0.0
    return lag_items * max(1.0, 1 + AMPLIFICATION * math.log(lag_items / partitions))


def u_shaped(idle_share: float, tasks: int, optimal: float) -> float:
    """``uShapedIdleCost``: least at the optimum, more on either side by the square."""
    if idle_share < optimal:
        penalty = UNDER_PENALTY * ((optimal - idle_share) / optimal) ** 2
    else:
        penalty = OVER_PENALTY * ((idle_share - optimal) / (1 - optimal)) ** 2
    return tasks * (optimal + penalty)
