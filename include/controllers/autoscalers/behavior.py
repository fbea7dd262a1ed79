"""How a HorizontalPodAutoscaler keeps a recommendation from changing too much, too soon.

Two rules of kubernetes, pkg/controller/podautoscaler/horizontal.go: one for an object with
``spec.behavior`` (``normalizeDesiredReplicasWithBehaviors``; since #97348 within an envelope that
starts from what runs), one for an object without (``normalizeDesiredReplicas``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from include.workloads.topologies import validation_problems
from include.workloads.topology_file import Strict

Recommendations = Sequence[tuple[float, int]]
"""Seconds since the run began and instances, oldest first."""
Changes = Sequence[tuple[float, int]]
"""Seconds since the run began and instances started (above 0) or stopped (below), oldest first."""

MAX, MIN, DISABLED = "max", "min", "disabled"
INSTANCES, PERCENT = "instances", "percent"
KINDS = (INSTANCES, PERCENT)
LEGACY_FACTOR, LEGACY_LEAST = 2, 4
"""``scaleUpLimitFactor`` and ``scaleUpLimitMinimum``."""
_BIGGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """At most so many instances, or percent of them, in a period (``HPAScalingPolicy``)."""

    kind: str
    value: float
    period_s: float


@dataclass(frozen=True, slots=True)
class Direction:
    """What holds on the way up or down (``HPAScalingRules``).

    ``window_s`` is how long recommendations count; ``select`` which policy does: the one that
    allows most ("max"), least ("min"), or none ("disabled"). ``tolerance`` is None where that of
    the controller holds.
    """

    window_s: float
    policies: tuple[ScalingPolicy, ...]
    select: str = MAX
    tolerance: float | None = None

    def changed(self, options: Mapping[str, Any]) -> Direction:
        """With the options of a spec; a policy is ``{percent: 100, period_s: 15}``."""
        policies = self.policies
        if "policies" in options:
            policies = tuple(
                ScalingPolicy(kind, policy[kind], policy["period_s"])
                for policy in options["policies"]
                for kind in KINDS
                if policy.get(kind) is not None
            )
        return Direction(
            options.get("window_s", self.window_s),
            policies,
            options.get("select", self.select),
            options.get("tolerance", self.tolerance),
        )


UP = Direction(0.0, (ScalingPolicy(INSTANCES, 4, 15.0), ScalingPolicy(PERCENT, 100, 15.0)))
DOWN = Direction(300.0, (ScalingPolicy(PERCENT, 100, 15.0),))
"""pkg/apis/autoscaling/v2/defaults.go, where ``behavior`` names a direction or none."""


@dataclass(frozen=True, slots=True)
class Behavior:
    """``spec.behavior``."""

    up: Direction = UP
    down: Direction = DOWN

    @classmethod
    def of(cls, options: Mapping[str, Any], down_window_s: float) -> Behavior:
        """From a spec: ``{scale_up: {...}, scale_down: {...}}``; what is not given is as above.

        ``down_window_s`` is the window of scale-downs that the controller manager has, and that
        of a ``behavior`` which names none.
        """
        up, down = options.get("scale_up", {}), options.get("scale_down", {})
        return cls(UP.changed(up), DOWN.changed({"window_s": down_window_s, **down}))

    @property
    def longest_s(self) -> float:
        """How long recommendations and changes may count."""
        directions = (self.up, self.down)
        return max(
            *(direction.window_s for direction in directions),
            *(policy.period_s for direction in directions for policy in direction.policies),
            0.0,
        )

    def stabilised(self, now_s: float, current: int, wanted: int, history: Recommendations) -> int:
        """``stabilizeRecommendationWithBehaviors``: what runs, moved into the envelope."""
        lowest = min([wanted, *_after(history, now_s - self.up.window_s)])
        highest = max([wanted, *_after(history, now_s - self.down.window_s)])
        return min(max(current, lowest), highest)

    def limited(
        self, now_s: float, current: int, wanted: int, changes: Changes, least: int, most: int
    ) -> int:
        """``convertDesiredReplicasWithBehaviorRate``: what policies and bounds allow."""
        if wanted > current:
            allowed = max(current, upper_limit(self.up, now_s, current, changes))
            return min(wanted, allowed, most)
        if wanted < current:
            allowed = min(current, lower_limit(self.down, now_s, current, changes))
            return max(wanted, allowed, least)
        return wanted


def upper_limit(rules: Direction, now_s: float, current: int, changes: Changes) -> int:
    """``calculateScaleUpLimitWithScalingRules``: a share is rounded up, so that one can grow."""
    if rules.select == DISABLED:
        return current
    proposed = [
        start + int(policy.value)
        if policy.kind == INSTANCES
        else math.ceil(start * (1 + policy.value / 100))
        for policy in rules.policies
        for start in [_at_start(policy, now_s, current, changes)]
    ]
    return min([_BIGGEST, *proposed]) if rules.select == MIN else max([-_BIGGEST, *proposed])


def lower_limit(rules: Direction, now_s: float, current: int, changes: Changes) -> int:
    """``calculateScaleDownLimitWithBehaviors``: a share is cut off."""
    if rules.select == DISABLED:
        return current
    proposed = [
        start - int(policy.value)
        if policy.kind == INSTANCES
        else int(start * (1 - policy.value / 100))
        for policy in rules.policies
        for start in [_at_start(policy, now_s, current, changes)]
    ]
    return max([-_BIGGEST, *proposed]) if rules.select == MIN else min([_BIGGEST, *proposed])


def stabilised_without(now_s: float, wanted: int, history: Recommendations, window_s: float) -> int:
    """``stabilizeRecommendation``: the highest of the window, in both directions."""
    return max([wanted, *(one for time_s, one in history if time_s >= now_s - window_s)])


def limited_without(current: int, wanted: int, least: int, most: int) -> int:
    """``convertDesiredReplicasWithRules``: at most twice as many, or four."""
    allowed = min(most, max(LEGACY_FACTOR * current, LEGACY_LEAST))
    return least if wanted < least else min(wanted, allowed)


_Above0 = Annotated[float, Field(gt=0, strict=True)]
_NotNegative = Annotated[float, Field(ge=0, strict=True)]


class _PolicyOptions(Strict):
    period_s: _Above0
    percent: _Above0 | None = None
    instances: Annotated[float, Field(ge=1, strict=True)] | None = None

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if (self.percent is None) == (self.instances is None):
            raise ValueError("write {percent: 100, period_s: 15} or {instances: 4, period_s: 15}")
        return self


class _DirectionOptions(Strict):
    window_s: _NotNegative = 0
    policies: list[_PolicyOptions] = Field(default_factory=list, min_length=1)
    select: Literal["max", "min", "disabled"] = "max"
    tolerance: _NotNegative | None = None


class _BehaviorOptions(Strict):
    scale_up: _DirectionOptions = _DirectionOptions()
    scale_down: _DirectionOptions = _DirectionOptions()


def problems_of(options: Any) -> Iterator[str]:
    """What is wrong with ``behavior`` in a spec."""
    if options is not None and not isinstance(options, Mapping):
        yield f"behavior must be null or {{scale_up: ..., scale_down: ...}}, got {options!r}"
        return
    try:
        _BehaviorOptions.model_validate(options or {})
    except ValidationError as error:
        yield from (f"behavior.{problem}" for problem in validation_problems(error))


def _after(history: Recommendations, start_s: float) -> list[int]:
    return [instances for time_s, instances in history if time_s > start_s]


def _at_start(policy: ScalingPolicy, now_s: float, current: int, changes: Changes) -> int:
    """Instances when the period of a policy began (``getReplicasChangePerPeriod``)."""
    return current - sum(_after(changes, now_s - policy.period_s))
