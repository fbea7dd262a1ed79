"""Rows of apache/druid, indexing-service: WeightedCostFunctionTest, CostBasedAutoScalerTest.

A row has the version of the cost function that its test was written for; tasks are those of a
supervisor that reads ``partitions``. What is above or below is an order of costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from include.controllers.autoscalers.druid import Druid, StreamMetrics, shared_counts, u_shaped
from include.controllers.autoscalers.upstream.rows import ANY_SETTING, Inputs, NotRepresentable

_OPTIONS = {
    "version": "version",
    "lag_weight": "lag_weight",
    "idle_weight": "idle_weight",
    "bounded_up": "bounded_up",
    "bounded_down": "bounded_down",
    "task_count_min": "min_instances",
    "task_count_max": "max_instances",
    "partitions": "partitions",
    "task_duration_s": "task_s",
}
_ABSENT = ("plugin", "burst", "high_lag", "critical", "use_poll_idle", "max_observed", "rollover",
           "cost_drop", "stats", "null", "config")  # fmt: skip
"""Parts of the names of inputs that no option of ours stands for."""


def check(function: str, inputs: Inputs) -> Mapping[str, Any]:
    """What our rule gives for a row; raises NotRepresentable."""
    name = function.split(".")[-1]
    if name not in _RULES or any(part in key for key in inputs for part in _ABSENT):
        raise NotRepresentable("AUTO-DRUID")
    return _RULES[name](inputs)


def _costs(inputs: Inputs) -> Mapping[str, Any]:
    """The costs of proposed counts, and the counts from the cheapest on."""
    rule, metrics = _rule(inputs), _metrics(inputs)
    costs = [rule.cost(metrics, count) for count in inputs["proposed"]]
    ascending = sorted(zip(costs, inputs["proposed"], strict=True))
    return {"costs": costs, "from_the_cheapest": [count for _, count in ascending]}


def _growth(inputs: Inputs) -> Mapping[str, Any]:
    """How much more one lag costs than another, by how much more it is."""
    (low, high), rule = inputs["avg_partition_lags"], _rule(inputs)
    cost = {
        lag: rule.cost(_metrics({**inputs, "avg_partition_lag": lag}), inputs["proposed"])
        for lag in (low, high)
    }
    return {"faster_than_the_lag": cost[high] / cost[low] > high / low}


def _optimal(inputs: Inputs) -> Mapping[str, Any]:
    metrics = _metrics(inputs)
    tasks = _rule(inputs).cheapest(metrics)
    return {
        "tasks": tasks or -1,
        "fewer": 0 < tasks < metrics.tasks,
        "more": tasks > metrics.tasks,
        "any": tasks > 0,
    }


def _candidates(inputs: Inputs) -> Mapping[str, Any]:
    counts = shared_counts(inputs["partitions"], inputs["task_count_min"], inputs["task_count_max"])
    return {
        "counts": counts,
        "has": [count for count in inputs.get("asked", ()) if count in counts],
        "how_many": len(counts),
    }


_RULES: Mapping[str, Callable[[Inputs], Mapping[str, Any]]] = {
    "computeCost": _costs,
    "computeCost by lag": _growth,
    "computeOptimalTaskCount": _optimal,
    "computeValidTaskCounts": _candidates,
    "uShapedIdleCost": lambda inputs: {
        "cost": u_shaped(inputs["idle_share"], inputs["tasks"], 0.25)
    },
}


def _metrics(inputs: Inputs) -> StreamMetrics:
    idle = inputs["idle_share"]
    return StreamMetrics(
        lag_items=inputs["avg_partition_lag"] * inputs["partitions"],
        tasks=inputs["tasks"],
        partitions=inputs["partitions"],
        idle_share=None if idle is None or idle < 0 else idle,
        rate_per_s=inputs.get("rate_per_s", 1000.0),
    )


def _rule(inputs: Inputs) -> Druid:
    options = {ours: inputs[theirs] for theirs, ours in _OPTIONS.items() if theirs in inputs}
    return Druid(setting=ANY_SETTING, **options)
