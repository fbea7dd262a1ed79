"""Rows of kubernetes, pkg/controller/podautoscaler: replica_calculator_test, horizontal_test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.controllers.autoscalers.hpa import percent, replicas
from include.controllers.autoscalers.upstream.left_out import NotRepresentable


def check(function: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """What our rule gives for a row; raises NotRepresentable."""
    if function == "ReplicaCalculator.GetResourceReplicas" and "requests_m" not in inputs:
        return resource_replicas(inputs)
    raise NotRepresentable("AUTO-CONFORM-HPA")


def resource_replicas(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replicas by the CPU of pods, and their mean utilisation."""
    shares = inputs["cpu_share_of_ready_pods"]
    wanted = replicas(
        shares, inputs["unready_pods"], inputs["target_utilization"], inputs["tolerance"]
    )
    return {
        "replicas": wanted,
        "utilization_percent": percent([share for share in shares if share is not None]),
    }
