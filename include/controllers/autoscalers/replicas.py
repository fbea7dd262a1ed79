"""What every HorizontalPodAutoscaler does with a recommendation, whoever makes it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from include.controllers.autoscalers.base import (
    Autoscaler,
    Recommendation,
    min_above_max,
    target_of,
)
from include.controllers.autoscalers.behavior import (
    Behavior,
    limited_without,
    problems_of,
    stabilised_without,
)
from include.model.decision import Reason
from include.model.observation import Observation

Timed = tuple[tuple[float, int], ...]
"""Seconds since the run began and instances, oldest first."""


@dataclass(frozen=True, slots=True)
class HpaMemory:
    """By operator: recommendations, and how many instances were started (above 0) or stopped."""

    recommended: Mapping[str, Timed] = field(default_factory=dict)
    changed: Mapping[str, Timed] = field(default_factory=dict)


def is_within(usage: float, tolerances: tuple[float, float]) -> bool:
    """Whether usage, as a share of its target, is close enough to 1, below and above."""
    below, above = tolerances
    return -below <= usage - 1 <= above


@dataclass(frozen=True, kw_only=True)
class Replicas(Autoscaler):
    """Stabilises and limits recommendations (kubernetes, pkg/controller/podautoscaler/horizontal.go
    and pkg/apis/autoscaling/v2/defaults.go).

    ``tolerance`` is how far usage may be from its target, as a share of it, without any change.
    ``behavior`` is that of the object, ``{scale_up: {window_s, policies, select, tolerance},
    scale_down: ...}``; what it leaves out is as in behavior.py, the window of scale-downs
    ``stabilise_s``. With None, an object
    without one, the highest recommendation of ``stabilise_s`` counts in both directions, and one
    sync starts no more than there are, or than makes four. There are at least ``min_instances``
    and never more than ``max_instances`` of an operator.
    """

    interval_s: float = 15.0
    tolerance: float = 0.1
    behavior: Mapping[str, Any] | None = None
    stabilise_s: float = 300.0
    min_instances: int = 1
    max_instances: int = 100

    may_be_zero = frozenset({"tolerance", "stabilise_s"})
    reasons = (Reason.UTILISATION_HIGH, Reason.UTILISATION_LOW)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from problems_of(self.behavior)
        yield from min_above_max(self)

    def initial_memory(self) -> HpaMemory:
        return HpaMemory()

    @abstractmethod
    def recommendation(self, operator: str, seen: Observation) -> tuple[int, str] | None:
        """Instances and what they follow from; None where nothing can be said."""

    def targets(
        self, memory: HpaMemory, seen: Observation
    ) -> tuple[HpaMemory, dict[str, Recommendation]]:
        """``reconcileAutoscaler``: bounds come first, what is within them is measured."""
        recommended, changed = dict(memory.recommended), dict(memory.changed)
        targets = dict[str, Recommendation]()
        for name in sorted(seen.operators):
            current = len(seen.serving(name))
            if not current:
                continue
            # An HPA that is new takes what is there for its first recommendation.
            history = self._recent(recommended.get(name, ((seen.now_s, current),)), seen.now_s)
            changes = self._recent(changed.get(name, ()), seen.now_s)
            recommended[name] = history
            wanted = min(max(current, self.min_instances), self.max_instances)
            detail = f"{name} may have {self.min_instances} to {self.max_instances} instances"
            if wanted == current:
                advice = self.recommendation(name, seen)
                if advice is None:
                    continue
                wanted, detail = advice
                recommended[name] = (*history, (seen.now_s, wanted))
                wanted = self.normalised(seen.now_s, current, wanted, history, changes)
            if wanted != current and self.rules:
                changed[name] = (*changes, (seen.now_s, wanted - current))
            targets[name] = target_of(current, wanted, detail, *self.reasons)
        return HpaMemory(recommended, changed), targets

    def normalised(
        self, now_s: float, current: int, wanted: int, history: Timed, changes: Timed
    ) -> int:
        """The instances that count, by the rule for an object with or without ``behavior``."""
        if self.rules is None:
            wanted = stabilised_without(now_s, wanted, history, self.stabilise_s)
            return limited_without(current, wanted, self.min_instances, self.max_instances)
        wanted = self.rules.stabilised(now_s, current, wanted, history)
        bounds = (self.min_instances, self.max_instances)
        return self.rules.limited(now_s, current, wanted, changes, *bounds)

    @property
    def tolerances(self) -> tuple[float, float]:
        """How far below and above its target usage may be, as shares of it."""
        if self.rules is None:
            return self.tolerance, self.tolerance
        down, up = self.rules.scale_down.tolerance, self.rules.scale_up.tolerance
        return self.tolerance if down is None else down, self.tolerance if up is None else up

    @cached_property
    def rules(self) -> Behavior | None:
        """``behavior`` with its defaults."""
        return None if self.behavior is None else Behavior.of(self.behavior, self.stabilise_s)

    def _recent(self, timed: Timed, now_s: float) -> Timed:
        longest_s = self.rules.longest_s if self.rules else self.stabilise_s
        return tuple(one for one in timed if one[0] >= now_s - longest_s)
