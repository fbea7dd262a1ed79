"""The arithmetic of Flink's autoscaler: capacities, bounds, and scale-downs that wait."""

from __future__ import annotations

import math
from dataclasses import dataclass

from include.controllers.autoscalers.base import Autoscaler

Recommendation = tuple[float, int, bool]
"""When, how many instances, and whether the utilisation was outside its bounds."""


@dataclass(frozen=True, slots=True)
class Delayed:
    """Scale-downs of one operator that wait (``DelayedScaleDown``)."""

    first_s: float
    recommended: tuple[Recommendation, ...] = ()
    """Falling from the first to the last, so the first is the highest."""

    def with_one(self, now_s: float, instances: int, *, outside: bool) -> Delayed:
        """One more; those that ask for no more than it are forgotten."""
        kept = tuple(one for one in self.recommended if one[1] > instances)
        return Delayed(self.first_s, (*kept, (now_s, instances, outside)))

    def highest_since(self, start_s: float) -> Recommendation:
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


@dataclass(frozen=True, kw_only=True)
class FlinkRules(Autoscaler):
    """The options of ``AutoScalerOptions`` that the arithmetic needs.

    Utilisation is held at ``target_share``, and nothing is done within ``boundary`` of it. What
    waits shall be worked off in ``catch_up_s``, and so shall what comes in during a restart of
    ``restart_s``. One step multiplies by 1 - ``most_down`` to 1 + ``most_up``.

    With ``key_groups`` (``pipeline.max-parallelism``) there are at most so many instances, and up
    to half of them a number that divides them, as operators up to 1.9 choose it; with 0, any.
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
