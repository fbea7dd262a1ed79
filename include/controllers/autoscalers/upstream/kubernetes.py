"""Rows of kubernetes, pkg/controller/podautoscaler: replica_calculator_test, horizontal_test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from include.controllers.autoscalers.behavior import (
    Behavior,
    Changes,
    Recommendations,
    ScaleDown,
    ScaleUp,
    limited_without,
    stabilised_without,
)
from include.controllers.autoscalers.hpa import percent, replicas
from include.controllers.autoscalers.upstream.rows import Inputs, NotRepresentable

_NOW_S = 1e6
_KINDS = {"Pods": "instances", "Percent": "percent"}
_WITHIN_S = 1.0
"""How long ago changes "within the period" were made."""


def check(function: str, inputs: Inputs) -> Mapping[str, Any]:
    """What our rule gives for a row; raises NotRepresentable."""
    name = function.split(" (")[0].split(".")[-1]
    if name not in _FUNCTIONS:
        raise NotRepresentable("AUTO-METRICS")
    return _FUNCTIONS[name](inputs)


def resource_replicas(inputs: Inputs) -> Mapping[str, Any]:
    """Replicas by the CPU of pods, and their mean utilisation."""
    if len(set(inputs.get("requests_m", ()))) > 1:
        raise NotRepresentable("AUTO-RESERVED")
    shares, tolerance = inputs["cpu_share_of_ready_pods"], inputs["tolerance"]
    tolerances = (tolerance, tolerance)
    wanted = replicas(shares, inputs["unready_pods"], inputs["target_utilization"], tolerances)
    read = [share for share in shares if share is not None]
    return {"replicas": wanted, "utilization_percent": percent(read) if read else None}


def stabilised(inputs: Inputs) -> Mapping[str, Any]:
    """Of an object with ``behavior``."""
    behavior = Behavior(
        scale_up=ScaleUp(window_s=inputs["scale_up_window_s"]),
        scale_down=ScaleDown(window_s=inputs["scale_down_window_s"]),
    )
    current, wanted = inputs["current_replicas"], inputs["desired_replicas"]
    return {"stabilized": behavior.stabilised(_NOW_S, current, wanted, _history(inputs))}


def stabilised_legacy(inputs: Inputs) -> Mapping[str, Any]:
    """Of an object without ``behavior``."""
    wanted, window_s = inputs["desired_replicas"], inputs["scale_down_window_s"]
    return {"stabilized": stabilised_without(_NOW_S, wanted, _history(inputs), window_s)}


def limited(inputs: Inputs) -> Mapping[str, Any]:
    """By policies and bounds."""
    rules = inputs["rules"] if isinstance(inputs["rules"], Mapping) else {}
    behavior = Behavior(
        scale_up=ScaleUp(**_options(rules.get("scaleUp"), _select(rules, "up"))),
        scale_down=ScaleDown(**_options(rules.get("scaleDown"), _select(rules, "down"))),
    )
    allowed = behavior.limited(
        _NOW_S,
        inputs["current_replicas"],
        inputs["desired_replicas"],
        [*_changes(rules.get("scaled_up_within_period", 0), 1),
         *_changes(rules.get("scaled_down_within_period", 0), -1)],
        inputs["min_replicas"],
        inputs["max_replicas"],
    )  # fmt: skip
    return {"replicas": allowed}


_FUNCTIONS: Mapping[str, Callable[[Inputs], Mapping[str, Any]]] = {
    "GetResourceReplicas": resource_replicas,
    "stabilizeRecommendationWithBehaviors": stabilised,
    "stabilizeRecommendation": stabilised_legacy,
    "convertDesiredReplicasWithBehaviorRate": limited,
    "convertDesiredReplicasWithRules": lambda inputs: {
        "replicas": limited_without(
            *(inputs[f"{name}_replicas"] for name in ("current", "desired", "min", "max"))
        )
    },
}


def _history(inputs: Inputs) -> Recommendations:
    """Recommendations with the minutes since they were made."""
    return [
        (_NOW_S - 60 * minutes, instances)
        for instances, minutes in inputs["recommendations_minutes_ago"]
    ]


def _options(policies: Any, select: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {} if select is None else {"select": select}
    if policies is not None:
        options["policies"] = [
            {_KINDS[kind]: value, "period_s": period_s} for kind, value, period_s in policies
        ]
    return options


def _select(rules: Mapping[str, Any], direction: str) -> str | None:
    """``selectPolicy`` of a direction, or of both: Max, Min or Disabled, with or without Change."""
    of_direction = [name for name in rules if "select" in name.lower()]
    for name in sorted(of_direction, key=lambda name: direction not in name.lower()):
        other = "down" if direction == "up" else "up"
        if other not in name.lower():
            word = str(rules[name]).lower()
            return next((one for one in ("max", "min", "disabled") if one in word), word)
    return None


def _changes(changes: Any, sign: int) -> Changes:
    """So many within the period, or [how many, seconds ago] each."""
    if isinstance(changes, int):
        return [(_NOW_S - _WITHIN_S, sign * changes)] if changes else []
    return [(_NOW_S - seconds, sign * count) for count, seconds in changes]
