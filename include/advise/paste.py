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
    names = "Write your own names for JOB"
    if policy.controller == "hpa":
        return f"Apply it with kubectl. {names}.", _yaml(_hpa(controller))
    if policy.controller == "keda":
        told = (
            f"Apply it with kubectl where KEDA runs. {names} and RABBITMQ, or take another trigger"
        )
        return f"{told} that counts waiting records.", _yaml(_keda(controller))
    if policy.controller == "target-tracking":
        told = (
            "For a service of ECS; elsewhere, a policy that tracks mean CPU is the same. Give each"
        )
        told = f"{told} document to aws application-autoscaling COMMAND --cli-input-json. {names}"
        return f"{told} and CLUSTER.", _tracking(controller)
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
            "behavior": _behavior(controller),
        },
    }


def _behavior(controller: Any) -> dict[str, Any]:
    """How fast it may scale; the stabilisation is that which was replayed."""
    up = [
        {"type": "Percent", "value": round(controller.up_percent), "periodSeconds": 15},
        {"type": "Pods", "value": controller.up_instances, "periodSeconds": 15},
    ]
    down = [{"type": "Percent", "value": round(controller.down_percent), "periodSeconds": 15}]
    return {
        "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": up},
        "scaleDown": {
            "stabilizationWindowSeconds": round(controller.stabilise_s),
            "policies": down,
        },
    }


def _keda(controller: Any) -> dict[str, Any]:
    """keda.sh/v1alpha1 (kedacore/keda, config/crd/bases/keda.sh_scaledobjects.yaml)."""
    metadata = {
        "hostFromEnv": "RABBITMQ",
        "queueName": "JOB",
        "mode": "QueueLength",
        "value": f"{controller.items_each:.12g}",
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "JOB"},
        "spec": {
            "scaleTargetRef": {"name": "JOB"},
            "minReplicaCount": 1,
            "maxReplicaCount": controller.max_instances,
            "triggers": [{"type": "rabbitmq", "metadata": metadata}],
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior(controller)}},
        },
    }


def _tracking(controller: Any) -> str:
    """register-scalable-target and put-scaling-policy of Application Auto Scaling, after a line
    with the name of each."""
    target = {
        "ServiceNamespace": "ecs",
        "ResourceId": "service/CLUSTER/JOB",
        "ScalableDimension": "ecs:service:DesiredCount",
    }
    limits = {"MinCapacity": 1, "MaxCapacity": controller.max_instances}
    tracking = {
        "TargetValue": 100 * controller.target_share,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "ECSServiceAverageCPUUtilization"
        },
        "ScaleOutCooldown": round(controller.out_cooldown_s),
        "ScaleInCooldown": round(controller.in_cooldown_s),
        "DisableScaleIn": False,
    }
    policy = {
        "PolicyName": "JOB",
        **target,
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": tracking,
    }
    documents = {"register-scalable-target": {**target, **limits}, "put-scaling-policy": policy}
    return "\n".join(
        f"# {command}\n{json.dumps(content, indent=2)}\n" for command, content in documents.items()
    )


def _flink(controller: Any) -> dict[str, str]:
    """Options of the Flink Kubernetes operator's autoscaler, as 1.13 names them."""
    prefix = "job.autoscaler."
    options = {
        f"{prefix}enabled": "true",
        f"{prefix}utilization.target": f"{controller.target_share:.12g}",
        f"{prefix}utilization.max": f"{controller.target_share + controller.boundary:.12g}",
        f"{prefix}utilization.min": f"{controller.target_share - controller.boundary:.12g}",
        f"{prefix}metrics.window": f"{controller.window_s:.12g} s",
        f"{prefix}stabilization.interval": f"{controller.stabilise_s:.12g} s",
        f"{prefix}catch-up.duration": f"{controller.catch_up_s:.12g} s",
        f"{prefix}restart.time": f"{controller.restart_s:.12g} s",
        f"{prefix}scale-down.interval": f"{controller.scale_down_after_s:.12g} s",
        f"{prefix}vertex.max-parallelism": f"{controller.max_instances}",
    }
    if controller.key_groups:
        options["pipeline.max-parallelism"] = f"{controller.key_groups}"
    return options
