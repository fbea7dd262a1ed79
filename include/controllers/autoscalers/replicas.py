"""What every HorizontalPodAutoscaler does with a recommendation, whoever makes it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from include.controllers.autoscalers.base import Autoscaler, Recommendation, target_of
from include.model.decision import Reason
from include.model.observation import Observation

Recommendations = tuple[tuple[float, int], ...]
"""Seconds since the run began and instances, oldest first."""


@dataclass(frozen=True, slots=True)
class HpaMemory:
    """The recommendations of the stabilisation window, by operator."""

    recommended: Mapping[str, Recommendations] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Replicas(Autoscaler):
    """Stabilises and limits recommendations (kubernetes, pkg/controller/podautoscaler/horizontal.go
    and pkg/apis/autoscaling/v2/defaults.go).

    ``tolerance`` is how far usage may be from its target, as a share of it, without any change.
    Going down the highest recommendation of ``stabilise_s`` counts. In one ``interval_s`` at most
    ``up_instances`` or ``up_percent`` of the instances start, whichever is more, and at most
    ``down_percent`` stop. There are never more than ``max_instances`` of an operator.
    """

    interval_s: float = 15.0
    tolerance: float = 0.1
    stabilise_s: float = 300.0
    up_instances: int = 4
    up_percent: float = 100.0
    down_percent: float = 100.0
    max_instances: int = 100

    may_be_zero = frozenset({"tolerance", "stabilise_s"})
    reasons = (Reason.UTILISATION_HIGH, Reason.UTILISATION_LOW)

    def initial_memory(self) -> HpaMemory:
        return HpaMemory()

    @abstractmethod
    def recommendation(self, operator: str, seen: Observation) -> tuple[int, str] | None:
        """Instances and what they follow from; None where nothing can be said."""

    def targets(
        self, memory: HpaMemory, seen: Observation
    ) -> tuple[HpaMemory, dict[str, Recommendation]]:
        """Recommend, stabilise, limit."""
        recommended, targets = dict(memory.recommended), dict[str, Recommendation]()
        for name in sorted(seen.operators):
            current = len(seen.serving(name))
            found = self.recommendation(name, seen) if current else None
            if found is None:
                continue
            wanted, told = found
            # An HPA that is new takes what is there for its first recommendation.
            history = recommended.get(name, ((seen.now_s, current),))
            wanted, recommended[name] = self.stabilised(seen.now_s, current, wanted, history)
            wanted = self.limited(current, wanted)
            targets[name] = target_of(current, wanted, told, *self.reasons)
        return HpaMemory(recommended), targets

    def stabilised(
        self, now_s: float, current: int, wanted: int, history: Recommendations
    ) -> tuple[int, Recommendations]:
        """The recommendation that counts, and the history with the new one."""
        within = tuple(one for one in history if one[0] > now_s - self.stabilise_s)
        kept = (*within, (now_s, wanted))
        if wanted >= current:
            return wanted, kept
        return max(instances for _, instances in kept), kept

    def limited(self, current: int, wanted: int) -> int:
        """What one sync may do."""
        if wanted > current:
            doubled = math.ceil(current * (1 + self.up_percent / 100))
            return min(wanted, max(current + self.up_instances, doubled), self.max_instances)
        least = math.floor(current * (1 - self.down_percent / 100))
        return max(1, wanted, least)
