"""The recommended policy in the words of the system that runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from include.advise.candidates import Policy
from include.advise.replay import ReplayConditions, setting_for

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "JOB"}


def configuration(policy: Policy, conditions: ReplayConditions) -> tuple[str, str]:
    """A sentence on what to do with it, and what to paste; write your own names for JOB."""
    controller: Any = policy.build()(setting_for(1.0, 15.0, conditions))
    if policy.controller == "hpa":
        return "Apply it with kubectl.", _yaml(_hpa(controller))
    if policy.controller == "target-tracking":
        told = "Give it to aws application-autoscaling put-scaling-policy."
        return told, json.dumps(_tracking(controller), indent=2) + "\n"
    if policy.controller == "flink-autoscaler":
        return "Add it to flinkConfiguration of the FlinkDeployment.", _yaml(_flink(controller))
    if policy.controller == "fixed":
        return "Set it and leave the job alone.", _yaml({"spec": {"replicas": policy.at_start}})
    return (
        "No autoscaler that ships has this rule: these are the options of the controller.",
        _yaml({"controller": policy.controller, "controller_options": dict(policy.options)}),
    )


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False)


def _hpa(controller: Any) -> dict[str, Any]:
    """autoscaling/v2, with the behaviour that was replayed."""
    up = [
        {"type": "Percent", "value": round(controller.up_percent), "periodSeconds": 15},
        {"type": "Pods", "value": controller.up_instances, "periodSeconds": 15},
    ]
    down = [{"type": "Percent", "value": round(controller.down_percent), "periodSeconds": 15}]
    utilisation = {"type": "Utilization", "averageUtilization": round(100 * controller.target_cpu)}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "JOB"},
        "spec": {
            "scaleTargetRef": TARGET,
            "minReplicas": 1,
            "maxReplicas": controller.max_instances,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": utilisation}}],
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 0,
                    "selectPolicy": "Max",
                    "policies": up,
                },
                "scaleDown": {
                    "stabilizationWindowSeconds": round(controller.stabilise_s),
                    "policies": down,
                },
            },
        },
    }


def _tracking(controller: Any) -> dict[str, Any]:
    """TargetTrackingScalingPolicyConfiguration of Application Auto Scaling."""
    return {
        "TargetValue": 100 * controller.target_share,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "ECSServiceAverageCPUUtilization"
        },
        "ScaleOutCooldown": round(controller.out_cooldown_s),
        "ScaleInCooldown": round(controller.in_cooldown_s),
        "DisableScaleIn": False,
    }


def _flink(controller: Any) -> dict[str, str]:
    """Options of the Flink Kubernetes operator's autoscaler, as 1.13 names them."""
    prefix = "job.autoscaler."
    return {
        f"{prefix}enabled": "true",
        f"{prefix}utilization.target": f"{controller.target_share:g}",
        f"{prefix}utilization.max": f"{controller.target_share + controller.boundary:g}",
        f"{prefix}utilization.min": f"{controller.target_share - controller.boundary:g}",
        f"{prefix}metrics.window": f"{controller.window_s:g} s",
        f"{prefix}stabilization.interval": f"{controller.stabilise_s:g} s",
        f"{prefix}catch-up.duration": f"{controller.catch_up_s:g} s",
        f"{prefix}restart.time": f"{controller.restart_s:g} s",
        f"{prefix}scale-down.interval": f"{controller.scale_down_after_s:g} s",
        f"{prefix}vertex.max-parallelism": f"{controller.max_instances}",
    }
