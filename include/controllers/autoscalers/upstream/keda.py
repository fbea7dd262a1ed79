"""Rows of kedacore/keda, and of what an HPA does with its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from include.controllers.autoscalers.behavior import limited_without
from include.controllers.autoscalers.keda import (
    OPERATIONS,
    Keda,
    counted_lag,
    even_instances,
    factors,
    is_active,
    per_instance,
    queued,
)
from include.controllers.autoscalers.upstream.rows import ANY_SETTING, Inputs, NotRepresentable
from include.model.observation import OperatorSample


def check(function: str, inputs: Inputs) -> Mapping[str, Any]:
    """What our rule gives for a row; raises NotRepresentable."""
    if function in _KAFKA:
        return _KAFKA[function](inputs)
    if any(word in name for name in inputs for word in _ABSENT):
        raise NotRepresentable("AUTO-KAFKA")
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
    if inputs["mode"] != "QueueLength":
        raise NotRepresentable("AUTO-UNACKED")
    return {"active": is_active(inputs["messages"], inputs.get("activation", 0))}


def _at_least(inputs: Inputs) -> Mapping[str, Any]:
    """The least number of instances, whatever waits."""
    if inputs.get("active"):
        raise NotRepresentable("AUTO-ONE")
    most = max(inputs["current"], inputs["min"])
    return {"replicas": limited_without(inputs["current"], 0, inputs["min"], most)}


def _lag(inputs: Inputs) -> Mapping[str, Any]:
    """The lag of all partitions and the activity it stands for."""
    options = {ours: inputs[theirs] for theirs, ours in _LAG_OPTIONS.items() if theirs in inputs}
    lag = counted_lag(inputs["lags"], inputs["lag_threshold"], **options)
    active = is_active(sum(inputs["lags"]), inputs.get("activation", 0))
    return {"lag": lag, "active": active}


def _metadata(inputs: Inputs) -> Mapping[str, Any]:
    """Whether options are refused; those of brokers and their security have no meaning here."""
    options: dict[str, Any] = {"scaler": "kafka"}
    for theirs, value in inputs["metadata"].items():
        if theirs not in _METADATA:
            raise NotRepresentable("AUTO-KAFKA")
        name, read = _METADATA[theirs]
        try:
            options[name] = read(value)
        except (KeyError, ValueError):
            return {"error": True}
    return {"error": any(Keda(setting=ANY_SETTING, **options).problems())}


_ABSENT = ("offset", "broker", "partition_limitation", "sasl", "tls")
"""Parts of the names of inputs of the Kafka scaler that nothing here stands for."""
_LAG_OPTIONS = {
    "allow_idle_consumers": "allow_idle",
    "limit_to_partitions_with_lag": "limit_to_lag",
    "ensure_even_distribution": "even_partitions",
}
_TRUTH = {"true": True, "false": False}
_METADATA: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "lagThreshold": ("items_each", int),
    "activationLagThreshold": ("activation_items", int),
    "allowIdleConsumers": ("allow_idle", _TRUTH.__getitem__),
    "excludePersistentLag": ("exclude_persistent", _TRUTH.__getitem__),
    "limitToPartitionsWithLag": ("limit_to_lag", _TRUTH.__getitem__),
    "ensureEvenDistributionOfPartitions": ("even_partitions", _TRUTH.__getitem__),
}
_KAFKA: Mapping[str, Callable[[Inputs], Mapping[str, Any]]] = {
    "FindFactors": lambda inputs: {"factors": factors(inputs["number"])},
    "getNextFactorThatBalancesConsumersToTopicPartitions": lambda inputs: {
        "factor": even_instances(inputs["lag"], inputs["partitions"], inputs["lag_threshold"])
    },
    "kafkaScaler.getTotalLag": _lag,
    "parseKafkaMetadata": _metadata,
}
