"""KEDA's RabbitMQ scaler in mode QueueLength, behind a HorizontalPodAutoscaler."""

from __future__ import annotations

import math
from dataclasses import dataclass

from include.controllers.autoscalers.replicas import HpaMemory, Replicas
from include.controllers.base import Gauge
from include.model.decision import Reason
from include.model.observation import Observation, OperatorSample


@dataclass(frozen=True, kw_only=True)
class Keda(Replicas):
    """One instance for every ``items_each`` items of the longest queue, with those that are
    delivered and not acknowledged (kedacore/keda, pkg/scalers/rabbitmq_scaler.go)."""

    items_each: float = 20.0

    watches = "items in the longest queue per instance"
    reasons = (Reason.QUEUE_LONG, Reason.QUEUE_SHORT)

    def watched(self, memory: HpaMemory, seen: Observation, operator: str) -> Gauge | None:
        """Items for each instance against the target and its tolerance."""
        current = len(seen.serving(operator))
        if operator not in seen.operators or not current:
            return None
        low, high = self.items_each * (1 - self.tolerance), self.items_each * (1 + self.tolerance)
        return Gauge(queued(seen.operators[operator]) / current, low, high)

    def recommendation(self, operator: str, seen: Observation) -> tuple[int, str] | None:
        """By ``GetExternalPerPodMetricReplicas``, which compares with the instances there are."""
        current, items = len(seen.serving(operator)), queued(seen.operators[operator])
        told = f"{operator} has {items} items in its longest queue, {self.items_each:g} for each"
        return per_instance(items, current, self.items_each, self.tolerance), told


def queued(sample: OperatorSample) -> int:
    """Items of the longest queue; what waits in all where nobody counts by queue."""
    counted = sample.longest_queue_items
    return sample.waiting_items if counted is None else counted


def per_instance(items: float, current: int, each: float, tolerance: float) -> int:
    """Instances for so many items, or those there are when that is within the tolerance."""
    usage = items / (each * current)
    return current if abs(1 - usage) <= tolerance else math.ceil(items / each)
