"""KEDA's scalers of RabbitMQ (mode QueueLength) and Kafka, behind a HorizontalPodAutoscaler."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from include.controllers.autoscalers.replicas import HpaMemory, Replicas, is_within
from include.controllers.base import Gauge
from include.model.decision import Reason
from include.model.errors import unknown_name
from include.model.observation import Observation, OperatorSample

OPERATIONS = ("max", "sum")
"""``avg`` is left out: samples do not say how many queues there are."""


RABBITMQ, KAFKA = "rabbitmq", "kafka"
SCALERS = (RABBITMQ, KAFKA)


@dataclass(frozen=True, kw_only=True)
class Keda(Replicas):
    """One instance for every ``items_each`` items that wait.

    With ``scaler`` "rabbitmq" (kedacore/keda, pkg/scalers/rabbitmq_scaler.go) those of the longest
    queue count, with what is delivered and not acknowledged; with ``operation`` "sum" those of all
    its queues, as with ``useRegex``.

    With "kafka" (pkg/scalers/kafka_scaler.go, whose ``items_each`` is 10) all that waits is lag,
    spread evenly over ``partitions``. There are no more instances than partitions unless
    ``allow_idle``; with ``limit_to_lag`` than partitions with lag; with ``even_partitions`` as many
    as share them out evenly. With ``exclude_persistent`` the lag of an operator that completed
    nothing since the last look asks for no instance.

    With no more than ``activation_items`` it asks for none. KEDA sets no ``behavior`` on
    the object that it makes, unless a user asks for one (controllers/keda/hpa.go).
    """

    scaler: str = RABBITMQ
    items_each: float = 20.0
    operation: str = "max"
    activation_items: int = 0
    partitions: int = 100
    allow_idle: bool = False
    limit_to_lag: bool = False
    even_partitions: bool = False
    exclude_persistent: bool = False

    watches = "items that wait per instance"
    may_be_zero = Replicas.may_be_zero | {"activation_items"}
    reasons = (Reason.QUEUE_LONG, Reason.QUEUE_SHORT)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.scaler not in SCALERS:
            yield unknown_name("scaler", self.scaler, SCALERS)
        if self.operation not in OPERATIONS:
            yield unknown_name("operation", self.operation, OPERATIONS)
        if self.limit_to_lag and self.allow_idle:
            yield "limit_to_lag and allow_idle exclude each other; leave out one"
        if self.limit_to_lag and self.even_partitions:
            yield "limit_to_lag and even_partitions exclude each other; leave out one"

    def watched(self, memory: HpaMemory, seen: Observation, operator: str) -> Gauge | None:
        """Items for each instance against the target and its tolerance."""
        current = len(seen.serving(operator))
        if operator not in seen.operators or not current:
            return None
        below, above = self.tolerances
        low, high = self.items_each * (1 - below), self.items_each * (1 + above)
        return Gauge(self._items(seen.operators[operator]) / current, low, high)

    def recommendation(self, operator: str, seen: Observation) -> tuple[int, str] | None:
        """By ``GetExternalPerPodMetricReplicas``, which compares with the instances there are."""
        current, sample = len(seen.serving(operator)), seen.operators[operator]
        items = self._items(sample)
        if self.scaler == KAFKA:
            where = f"its {self.partitions} partitions"
        else:
            where = "its longest queue" if self.operation == "max" else "its queues"
        message = f"{operator} has {items:.10g} items in {where}, {self.items_each:g} for each"
        if not is_active(self._waiting(sample), self.activation_items):
            return 0, message
        return per_instance(items, current, self.items_each, self.tolerances), message

    def _waiting(self, sample: OperatorSample) -> int:
        """What decides on the activity, whatever of it is taken into account."""
        return sample.waiting_items if self.scaler == KAFKA else queued(sample, self.operation)

    def _items(self, sample: OperatorSample) -> float:
        """What is shared out among instances."""
        if self.scaler == RABBITMQ:
            return queued(sample, self.operation)
        stuck = self.exclude_persistent and sample.completed_items == 0
        lags = spread(0 if stuck else sample.waiting_items, self.partitions)
        return counted_lag(
            lags,
            self.items_each,
            allow_idle=self.allow_idle,
            limit_to_lag=self.limit_to_lag,
            even_partitions=self.even_partitions,
        )


def is_active(items: float, activation: float) -> bool:
    """Whether a scaler asks for any instance; here the last one stays (AUTO-ONE)."""
    return items > activation


def spread(items: int, partitions: int) -> list[int]:
    """The lag of each partition where all have as much as can be."""
    each, more = divmod(items, partitions)
    return [each + (place < more) for place in range(partitions)]


def counted_lag(
    lags: Sequence[int],
    each: float,
    *,
    allow_idle: bool = False,
    limit_to_lag: bool = False,
    even_partitions: bool = False,
) -> float:
    """``getTotalLag`` of Kafka: the lag of all partitions, but no more than asks for as many
    instances as can have one."""
    total = float(sum(lags))
    if allow_idle and not limit_to_lag and not even_partitions:
        return total
    if even_partitions:
        total = even_instances(total, len(lags), each) * each
    most = sum(lag > 0 for lag in lags) if limit_to_lag else len(lags)
    return most * each if total // each > most else total


def even_instances(lag: float, partitions: int, each: float) -> int:
    """``getNextFactorThatBalancesConsumersToTopicPartitions``: the fewest instances that suffice
    and have equally many partitions, else one for each partition."""
    return next((one for one in factors(partitions) if one * each >= lag), partitions)


def factors(number: int) -> list[int]:
    """``FindFactors``: what divides the number, ascending."""
    return [one for one in range(1, number + 1) if number % one == 0]


def queued(sample: OperatorSample, operation: str) -> int:
    """Items of the longest queue, or of all; all that wait where nobody counts by queue."""
    longest = sample.longest_queue_items
    return sample.waiting_items if longest is None or operation == "sum" else longest


def per_instance(items: float, current: int, each: float, tolerances: tuple[float, float]) -> int:
    """Instances for so many items, or those there are when that is within the tolerance."""
    usage = items / (each * current)
    return current if is_within(usage, tolerances) else math.ceil(items / each)
