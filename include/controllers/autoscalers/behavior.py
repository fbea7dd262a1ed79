"""How a HorizontalPodAutoscaler keeps a recommendation from changing too much, too soon.

Two rules of kubernetes, pkg/controller/podautoscaler/horizontal.go: one for an object with
``spec.behavior`` (``normalizeDesiredReplicasWithBehaviors``; since #97348 within an envelope that
starts from what runs), one for an object without (``normalizeDesiredReplicas``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from include.workloads.topologies import validation_problems
from include.workloads.topology_file import Strict

Recommendations = Sequence[tuple[float, int]]
"""Seconds since the run began and instances, oldest first."""
Changes = Sequence[tuple[float, int]]
"""Seconds since the run began and instances started (above 0) or stopped (below), oldest first."""

MIN, DISABLED = "min", "disabled"
LEGACY_FACTOR, LEGACY_LEAST = 2, 4
"""``scaleUpLimitFactor`` and ``scaleUpLimitMinimum``."""
_BIGGEST = 2**31 - 1


_Above0 = Annotated[float, Field(gt=0, strict=True)]
_NotNegative = Annotated[float, Field(ge=0, strict=True)]


class ScalingPolicy(Strict):
    """At most so many instances, or percent of them, in a period (``HPAScalingPolicy``)."""

    period_s: _Above0
    percent: _Above0 | None = None
    instances: Annotated[float, Field(ge=1, strict=True)] | None = None

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if (self.percent is None) == (self.instances is None):
            raise ValueError("write {percent: 100, period_s: 15} or {instances: 4, period_s: 15}")
        return self


PERCENT_OF_ALL = ScalingPolicy(percent=100, period_s=15)
_Policies = Annotated[list[ScalingPolicy], Field(min_length=1)]


class Direction(Strict):
    """What holds on the way up or down (``HPAScalingRules``).

    ``window_s`` is how long recommendations count; ``select`` which policy does: the one that
    allows most ("max"), least ("min"), or none ("disabled"). ``tolerance`` is None where that of
    the controller holds.
    """

    window_s: _NotNegative
    policies: _Policies
    select: Literal["max", "min", "disabled"] = "max"
    tolerance: _NotNegative | None = None


class ScaleUp(Direction):
    """With the defaults of pkg/apis/autoscaling/v2/defaults.go."""

    window_s: _NotNegative = 0
    policies: _Policies = Field(default=[ScalingPolicy(instances=4, period_s=15), PERCENT_OF_ALL])


class ScaleDown(Direction):
    """With the defaults of pkg/apis/autoscaling/v2/defaults.go."""

    window_s: _NotNegative = 300
    policies: _Policies = Field(default=[PERCENT_OF_ALL])


class Behavior(Strict):
    """``spec.behavior``."""

    scale_up: ScaleUp = ScaleUp()
    scale_down: ScaleDown = ScaleDown()

    @classmethod
    def of(cls, options: Mapping[str, Any], down_window_s: float) -> Behavior:
        """From a spec; what is not given is as above.

        ``down_window_s`` is the window of scale-downs that the controller manager has, and that
        of a ``behavior`` which names none.
        """
        down = {"window_s": down_window_s, **options.get("scale_down", {})}
        return cls.model_validate({**options, "scale_down": down})

    @property
    def longest_s(self) -> float:
        """How long recommendations and changes may count."""
        directions = (self.scale_up, self.scale_down)
        return max(
            *(direction.window_s for direction in directions),
            *(policy.period_s for direction in directions for policy in direction.policies),
            0.0,
        )

    def stabilised(self, now_s: float, current: int, wanted: int, history: Recommendations) -> int:
        """``stabilizeRecommendationWithBehaviors``: what runs, moved into the envelope."""
        lowest = min([wanted, *_after(history, now_s - self.scale_up.window_s)])
        highest = max([wanted, *_after(history, now_s - self.scale_down.window_s)])
        return min(max(current, lowest), highest)

    def limited(
        self, now_s: float, current: int, wanted: int, changes: Changes, least: int, most: int
    ) -> int:
        """``convertDesiredReplicasWithBehaviorRate``: what policies and bounds allow."""
        if wanted > current:
            allowed = max(current, upper_limit(self.scale_up, now_s, current, changes))
            return min(wanted, allowed, most)
        if wanted < current:
            allowed = min(current, lower_limit(self.scale_down, now_s, current, changes))
            return max(wanted, allowed, least)
        return wanted


def upper_limit(rules: Direction, now_s: float, current: int, changes: Changes) -> int:
    """``calculateScaleUpLimitWithScalingRules``: a share is rounded up, so that one can grow."""
    if rules.select == DISABLED:
        return current
    proposed = [
        math.ceil(start * (1 + policy.percent / 100))
        if policy.percent
        else start + int(policy.instances or 0)
        for policy in rules.policies
        for start in [_at_start(policy, now_s, current, changes)]
    ]
    return min([_BIGGEST, *proposed]) if rules.select == MIN else max([-_BIGGEST, *proposed])


def lower_limit(rules: Direction, now_s: float, current: int, changes: Changes) -> int:
    """``calculateScaleDownLimitWithBehaviors``: a share is cut off."""
    if rules.select == DISABLED:
        return current
    proposed = [
        int(start * (1 - policy.percent / 100))
        if policy.percent
        else start - int(policy.instances or 0)
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


def problems_of(options: Any) -> Iterator[str]:
    """What is wrong with ``behavior`` in a spec."""
    if options is not None and not isinstance(options, Mapping):
        yield f"behavior must be null or {{scale_up: ..., scale_down: ...}}, got {options!r}"
        return
    try:
        Behavior.model_validate(options or {})
    except ValidationError as error:
        yield from (f"behavior.{problem}" for problem in validation_problems(error))


def _after(history: Recommendations, start_s: float) -> list[int]:
    return [instances for time_s, instances in history if time_s > start_s]


def _at_start(policy: ScalingPolicy, now_s: float, current: int, changes: Changes) -> int:
    """Instances when the period of a policy began (``getReplicasChangePerPeriod``)."""
    return current - sum(_after(changes, now_s - policy.period_s))
