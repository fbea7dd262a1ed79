"""KEDA's RabbitMQ scaler in mode QueueLength, behind a HorizontalPodAutoscaler."""

from __future__ import annotations

import math
from dataclasses import dataclass

from include.controllers.today.replicas import Replicas
from include.model.decision import Reason
from include.model.observation import Observation


@dataclass(frozen=True, kw_only=True)
class Keda(Replicas):
    """One instance for every ``items_each`` items of the longest queue, with those that are
    delivered and not acknowledged (kedacore/keda, pkg/scalers/rabbitmq_scaler.go)."""

    items_each: float = 20.0

    reasons = (Reason.QUEUE_LONG, Reason.QUEUE_SHORT)

    def recommendation(self, operator: str, seen: Observation) -> tuple[int, str] | None:
        """By ``GetExternalPerPodMetricReplicas``, which compares with the instances there are."""
        sample, current = seen.operators[operator], len(seen.serving(operator))
        counted = sample.longest_queue_items
        items = sample.waiting_items if counted is None else counted
        told = f"{operator} has {items} items in its longest queue, {self.items_each:g} for each"
        return per_instance(items, current, self.items_each, self.tolerance), told


def per_instance(items: float, current: int, each: float, tolerance: float) -> int:
    """Instances for so many items, or those there are when that is within the tolerance."""
    usage = items / (each * current)
    return current if abs(1 - usage) <= tolerance else math.ceil(items / each)
