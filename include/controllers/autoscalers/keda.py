"""KEDA's RabbitMQ scaler in mode QueueLength, behind a HorizontalPodAutoscaler."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from include.controllers.autoscalers.replicas import HpaMemory, Replicas, is_within
from include.controllers.base import Gauge
from include.model.decision import Reason
from include.model.errors import unknown_name
from include.model.observation import Observation, OperatorSample

OPERATIONS = ("max", "sum")
"""``avg`` is left out: samples do not say how many queues there are."""


@dataclass(frozen=True, kw_only=True)
class Keda(Replicas):
    """One instance for every ``items_each`` items of the longest queue, with those that are
    delivered and not acknowledged (kedacore/keda, pkg/scalers/rabbitmq_scaler.go).

    With ``operation`` "sum" all its queues count, as with ``useRegex``. KEDA sets no ``behavior``
    on the object that it makes, unless a user asks for one (controllers/keda/hpa.go).
    """

    items_each: float = 20.0
    operation: str = "max"

    watches = "items in the longest queue per instance"
    reasons = (Reason.QUEUE_LONG, Reason.QUEUE_SHORT)

    def problems(self) -> Iterator[str]:
        """Options that make no sense, each with what to do."""
        yield from super().problems()
        if self.operation not in OPERATIONS:
            yield unknown_name("operation", self.operation, OPERATIONS)

    def watched(self, memory: HpaMemory, seen: Observation, operator: str) -> Gauge | None:
        """Items for each instance against the target and its tolerance."""
        current = len(seen.serving(operator))
        if operator not in seen.operators or not current:
            return None
        below, above = self.tolerances
        low, high = self.items_each * (1 - below), self.items_each * (1 + above)
        return Gauge(queued(seen.operators[operator], self.operation) / current, low, high)

    def recommendation(self, operator: str, seen: Observation) -> tuple[int, str] | None:
        """By ``GetExternalPerPodMetricReplicas``, which compares with the instances there are."""
        current = len(seen.serving(operator))
        items = queued(seen.operators[operator], self.operation)
        where = "its longest queue" if self.operation == "max" else "its queues"
        told = f"{operator} has {items} items in {where}, {self.items_each:g} for each"
        return per_instance(items, current, self.items_each, self.tolerances), told


def queued(sample: OperatorSample, operation: str) -> int:
    """Items of the longest queue, or of all; all that wait where nobody counts by queue."""
    longest = sample.longest_queue_items
    return sample.waiting_items if longest is None or operation == "sum" else longest


def per_instance(items: float, current: int, each: float, tolerances: tuple[float, float]) -> int:
    """Instances for so many items, or those there are when that is within the tolerance."""
    usage = items / (each * current)
    return current if is_within(usage, tolerances) else math.ceil(items / each)
