"""Rows of kedacore/keda, and of what an HPA does with its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.controllers.autoscalers.behavior import limited_without
from include.controllers.autoscalers.keda import OPERATIONS, per_instance, queued
from include.controllers.autoscalers.upstream.left_out import NotRepresentable
from include.model.observation import OperatorSample

Inputs = Mapping[str, Any]


def check(function: str, inputs: Inputs) -> Mapping[str, Any]:
    """What our rule gives for a row; raises NotRepresentable."""
    if "target_per_pod" in inputs:
        return _per_pod(inputs)
    if "queues" in inputs:
        return _queues(inputs)
    if "messages" in inputs:
        return _activity(inputs)
    if "min" in inputs and "idle" not in inputs:
        return _at_least(inputs)
    raise NotRepresentable("AUTO-ONE" if "idle" in inputs else "AUTO-UNACKED")


def _per_pod(inputs: Inputs) -> Mapping[str, Any]:
    """``GetExternalPerPodMetricReplicas``."""
    tolerances = (inputs["tolerance"], inputs["tolerance"])
    each, current = inputs["target_per_pod"], inputs["current"]
    return {"replicas": per_instance(inputs["metric"], current, each, tolerances)}


def _queues(inputs: Inputs) -> Mapping[str, Any]:
    """What several queues count: a sample has the longest and all of them, and no mean."""
    operation = inputs.get("operation", "max")
    if operation not in OPERATIONS:
        raise NotRepresentable("AUTO-UNACKED")
    messages = [queue["messages"] for queue in inputs["queues"]]
    sample = OperatorSample(
        operator="queues",
        waiting_items=sum(messages),
        durations_ms=(),
        arrived_items=0,
        completed_items=0,
        longest_queue_items=max(messages, default=0),
    )
    return {"messages": queued(sample, operation)}


def _activity(inputs: Inputs) -> Mapping[str, Any]:
    """Whether the rule asks for an instance at all; the last one stays here (AUTO-ONE)."""
    if inputs["mode"] != "QueueLength" or inputs.get("activation", 0):
        raise NotRepresentable("AUTO-UNACKED")
    return {"active": per_instance(inputs["messages"], 1, inputs["value"], (0.1, 0.1)) > 0}


def _at_least(inputs: Inputs) -> Mapping[str, Any]:
    """The least number of instances, whatever waits."""
    if inputs.get("active"):
        raise NotRepresentable("AUTO-ONE")
    most = max(inputs["current"], inputs["min"])
    return {"replicas": limited_without(inputs["current"], 0, inputs["min"], most)}
