"""The recommended policy in the words of the system that runs it."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from include.advise.candidates import Policy
from include.advise.replay import ReplayConditions, setting_for
from include.advise.request import FIXED, PLATFORMS
from include.controllers.autoscalers.behavior import Behavior, Direction

TARGETS = {
    "kubernetes": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "JOB"},
    "flink": {"apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment", "name": "JOB"},
}
"""What an autoscaler of Kubernetes scales."""
REACTIVE = {"spec": {"mode": "standalone", "flinkConfiguration": {"scheduler-mode": "REACTIVE"}}}
"""What lets others set the task managers of a FlinkDeployment
(apache/flink-kubernetes-operator, examples/hpa/basic-hpa.yaml; that the mode cannot be changed:
DefaultValidator.java, validateSpecChange)."""
_COLUMNS = {
    "flink": re.compile(r"flink|task_?manager|numRecords(In|Out)|busyTime", re.IGNORECASE),
    "kubernetes": re.compile(r"kube_|replicas|(^|_)pods?(_|$)", re.IGNORECASE),
}
"""Columns, metrics and queries of a recording that say what its job runs on."""


def platforms_of(choice: str, columns: Sequence[str], provider: str) -> tuple[str, ...]:
    """What the job may run on: as asked, else by what was recorded, else by whose prices it has."""
    recorded = (
        platform
        for platform, names in _COLUMNS.items()
        if any(names.search(column) for column in columns)
    )
    if platform := choice or next(recorded, ""):
        return (platform,)
    return ("kubernetes", "ecs") if provider.lower() in ("aws", "amazon") else ("kubernetes",)


def configuration(
    policy: Policy,
    conditions: ReplayConditions,
    platforms: Sequence[str] = PLATFORMS,
    slots_each: int = 1,
) -> tuple[str, str]:
    """A sentence on what to do with it, and what to paste; write your own names for JOB.

    Instances are slots, of which a task manager has ``slots_each``.
    """
    forms = FORMS.get(policy.controller, {})
    platform = next((one for one in forms if one in platforms), None)
    if platform is None and "flink" in platforms:
        return _ACT, _acting(policy, conditions.max_instances)
    if platform is None:
        intro = f"No autoscaler of {' or '.join(platforms)} has this rule: these are the options of"
        options = {"controller": policy.controller, "controller_options": dict(policy.options)}
        return f"{intro} the controller.", _yaml(options)
    how, write = forms[platform]
    built = policy.build(setting_for(1.0, conditions))
    if policy.controller != "flink-autoscaler":  # that counts slots, too
        built = _of_task_managers(built, slots_each)
    return how, write(built)


def _of_task_managers(controller: Any, slots: int) -> Any:
    """With numbers of task managers in place of slots, so many of which are one."""
    changed: dict[str, Any] = {
        name: math.ceil(getattr(controller, name) / slots)
        for name in ("instances_each", "min_instances", "max_instances")
        if hasattr(controller, name)
    }
    if hasattr(controller, "items_each"):
        changed["items_each"] = controller.items_each * slots
    if rules := getattr(controller, "rules", None):
        changed["behavior"] = {name: _options_of(way, slots) for name, way in rules}
    return replace(controller, **changed)


def _options_of(rules: Direction, slots: int) -> dict[str, Any]:
    """Rules of a direction as an option has them, their instances in task managers."""
    options = rules.model_dump(exclude_none=True)
    for policy in options["policies"]:
        if "instances" in policy:
            policy["instances"] = math.ceil(policy["instances"] / slots)
    return options


def _acting(policy: Policy, most: int) -> str:
    """The dry run of `tidebench act` with the controller; in a comment how it changes the job."""
    settings = (f"--set {shlex.quote(f'{n}={json.dumps(v)}')}" for n, v in policy.options.items())
    words = f"tidebench act http://JOBMANAGER:8081 --job JOB --controller {policy.controller}"
    rest = f"--max-slots {most} --limits limits.yaml --state var/act"
    command = " ".join((words, *settings, rest))
    return f"{command}\n# then, to change the job:\n{command} --really\n"


def to_stop(policy: Policy, recorded: Policy | None) -> str:
    """What has to end before ``policy`` is applied to a job that was ``recorded`` under another
    (None: not known); empty where nothing has to."""
    why = "it would go on changing the number of instances"
    if recorded is None:
        return f"If something scales the job now, delete or suspend it first: {why}."
    if recorded.name == policy.name or recorded.controller == FIXED:
        return ""
    return f"First delete or suspend what scales the job now ({recorded.name}): {why}."


def _yaml(*documents: Mapping[str, Any]) -> str:
    return yaml.safe_dump_all([dict(one) for one in documents], sort_keys=False)


def _json(value: Mapping[str, Any]) -> str:
    return f"{json.dumps(value, indent=2)}\n"


def _hpa(
    target: str, share: float, bounds: tuple[int, int], behavior: Mapping[str, Any] | None
) -> dict[str, Any]:
    """autoscaling/v2, for CPU."""
    utilisation = {"type": "Utilization", "averageUtilization": round(100 * share)}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "JOB"},
        "spec": {
            "scaleTargetRef": dict(TARGETS[target]),
            "minReplicas": bounds[0],
            "maxReplicas": bounds[1],
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": utilisation}}],
        }
        | ({} if behavior is None else {"behavior": behavior}),
    }


def _as_replayed(target: str, controller: Any) -> dict[str, Any]:
    bounds = controller.min_instances, controller.max_instances
    return _hpa(target, controller.target_cpu, bounds, _behavior(controller.rules))


def _as_tracked(target: str, controller: Any) -> dict[str, Any]:
    """An HPA that looks back for as long as the alarms of target tracking do."""
    looks_back_s = {
        "scaleUp": controller.out_periods * controller.interval_s,
        "scaleDown": controller.in_periods * controller.interval_s,
    }
    behavior = {way: {"stabilizationWindowSeconds": round(s)} for way, s in looks_back_s.items()}
    return _hpa(target, controller.target_share, (1, controller.max_instances), behavior)


def _behavior(rules: Behavior | None) -> dict[str, Any] | None:
    """How fast it may scale, as it was replayed."""
    if rules is None:
        return None
    return {
        name: _direction(way)
        for name, way in (("scaleUp", rules.scale_up), ("scaleDown", rules.scale_down))
    }


def _direction(rules: Direction) -> dict[str, Any]:
    policies = [
        {
            "type": "Percent" if policy.percent else "Pods",
            "value": round(policy.percent or policy.instances or 0),
            "periodSeconds": round(policy.period_s),
        }
        for policy in rules.policies
    ]
    return {
        "stabilizationWindowSeconds": round(rules.window_s),
        "selectPolicy": rules.select.capitalize(),
        "policies": policies,
    } | ({} if rules.tolerance is None else {"tolerance": f"{rules.tolerance:.12g}"})


def _keda(target: str, controller: Any) -> dict[str, Any]:
    """keda.sh/v1alpha1 (kedacore/keda, config/crd/bases/keda.sh_scaledobjects.yaml)."""
    metadata = {
        "hostFromEnv": "RABBITMQ",
        "queueName": "JOB",
        "mode": "QueueLength",
        "value": f"{controller.items_each:.12g}",
    }
    behavior = _behavior(controller.rules)
    advanced = {"advanced": {"horizontalPodAutoscalerConfig": {"behavior": behavior}}}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "JOB"},
        "spec": {
            "scaleTargetRef": dict(TARGETS[target]),
            "minReplicaCount": controller.min_instances,
            "maxReplicaCount": controller.max_instances,
            "triggers": [{"type": "rabbitmq", "metadata": metadata}],
        }
        | (advanced if behavior else {}),
    }


def _tracking(share: float, bounds: tuple[int, int], cooldowns: Mapping[str, int]) -> str:
    """register-scalable-target and put-scaling-policy of Application Auto Scaling, after a line
    with the name of each."""
    target = {
        "ServiceNamespace": "ecs",
        "ResourceId": "service/CLUSTER/JOB",
        "ScalableDimension": "ecs:service:DesiredCount",
    }
    limits = {"MinCapacity": bounds[0], "MaxCapacity": bounds[1]}
    tracking = {
        "TargetValue": 100 * share,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "ECSServiceAverageCPUUtilization"
        },
        **cooldowns,
        "DisableScaleIn": False,
    }
    policy = {
        "PolicyName": "JOB",
        **target,
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": tracking,
    }
    documents: dict[str, Mapping[str, Any]] = {
        "register-scalable-target": {**target, **limits},
        "put-scaling-policy": policy,
    }
    return "\n".join(f"# {command}\n{_json(content)}" for command, content in documents.items())


def _tracking_as_replayed(controller: Any) -> str:
    cooldowns = {
        "ScaleOutCooldown": round(controller.out_cooldown_s),
        "ScaleInCooldown": round(controller.in_cooldown_s),
    }
    return _tracking(controller.target_share, (1, controller.max_instances), cooldowns)


def _flink(controller: Any) -> dict[str, str]:
    """Options of the Flink Kubernetes operator's autoscaler, as 1.13 names them."""
    prefix = "job.autoscaler."
    low, high = controller.utilization_min, controller.utilization_max
    low = controller.target_share - controller.boundary if math.isnan(low) else low
    high = controller.target_share + controller.boundary if math.isnan(high) else high
    options = {
        f"{prefix}enabled": "true",
        f"{prefix}utilization.target": f"{controller.target_share:.12g}",
        f"{prefix}utilization.max": f"{high:.12g}",
        f"{prefix}utilization.min": f"{low:.12g}",
        f"{prefix}metrics.window": f"{controller.window_s:.12g} s",
        f"{prefix}stabilization.interval": f"{controller.stabilise_s:.12g} s",
        f"{prefix}catch-up.duration": f"{controller.catch_up_s:.12g} s",
        f"{prefix}restart.time": f"{controller.restart_s:.12g} s",
        f"{prefix}scale-down.interval": f"{controller.scale_down_after_s:.12g} s",
        f"{prefix}vertex.min-parallelism": f"{controller.min_instances}",
        f"{prefix}vertex.max-parallelism": f"{controller.max_instances}",
        f"{prefix}scale-down.max-factor": f"{controller.most_down:.12g}",
        f"{prefix}scale-up.max-factor": f"{controller.most_up:.12g}",
    }
    if controller.key_groups:
        options["pipeline.max-parallelism"] = f"{controller.key_groups}"
    return options


_NAMES = "Write your own names for JOB"
_ACT = (
    "Flink has no autoscaler with this rule: Tidebench runs it beside the job, which needs the "
    "adaptive scheduler. Write limits first (docs/act.md), add the --objective and --prices that "
    "you gave here, and look at the dry run. TaskManagers it neither starts nor stops: hosts cost "
    f"less only where something else gives them back. {_NAMES} and JOBMANAGER."
)
_KUBECTL = f"Apply it with kubectl. {_NAMES}."
_OPERATOR = (
    "It is for a FlinkDeployment of the Flink Kubernetes operator; --platform kubernetes writes it "
    "for a plain Deployment."
)
_REACTIVE = (
    f"{_OPERATOR} Add the first document to it, so that its task managers may be set from outside, "
    f"and apply the second with kubectl. {_NAMES}. A FlinkDeployment in native mode has to be "
    "deleted first and applied anew: its operator refuses to change the mode."
)
_NEAREST = "It has the same target but waits differently: this rule itself was not replayed."
_QUEUE = f"Apply it with kubectl where KEDA runs. {_NAMES} and RABBITMQ, or take another trigger"
_PATCH = "--patch-file configuration.txt"
_REPLICAS = (
    f"Set it there, where it goes before spec.job.parallelism: kubectl patch flinkdeployment JOB "
    f"--type merge {_PATCH}."
)
_ALONE = f"Nothing else may change the number. {_NAMES}."
_SERVICE = f"Give it to aws ecs update-service --cli-input-json. {_NAMES} and CLUSTER."
_AWS = "Give each document to aws application-autoscaling COMMAND --cli-input-json."
FORMS: Mapping[str, Mapping[str, tuple[str, Callable[[Any], str]]]] = {
    "hpa": {
        "kubernetes": (_KUBECTL, lambda one: _yaml(_as_replayed("kubernetes", one))),
        "flink": (_REACTIVE, lambda one: _yaml(REACTIVE, _as_replayed("flink", one))),
        "ecs": (
            f"The nearest that ECS has. {_NEAREST} {_AWS} {_NAMES} and CLUSTER.",
            lambda one: _tracking(one.target_cpu, (one.min_instances, one.max_instances), {}),
        ),
    },
    "target-tracking": {
        "ecs": (
            f"For a service of ECS. {_AWS} {_NAMES} and CLUSTER.",
            _tracking_as_replayed,
        ),
        "kubernetes": (
            f"The nearest that Kubernetes has, an HPA. {_NEAREST} {_KUBECTL}",
            lambda one: _yaml(_as_tracked("kubernetes", one)),
        ),
        "flink": (
            f"The nearest that Flink on Kubernetes has, an HPA. {_NEAREST} {_REACTIVE}",
            lambda one: _yaml(REACTIVE, _as_tracked("flink", one)),
        ),
    },
    "keda": {
        "kubernetes": (
            f"{_QUEUE} that counts waiting records.",
            lambda one: _yaml(_keda("kubernetes", one)),
        ),
        "flink": (
            f"{_REACTIVE} KEDA has to run; take the trigger that counts waiting records.",
            lambda one: _yaml(REACTIVE, _keda("flink", one)),
        ),
    },
    "flink-autoscaler": {
        "flink": (
            "Add it to flinkConfiguration of the FlinkDeployment.",
            lambda one: _yaml(_flink(one)),
        ),
    },
    "fixed": {
        "kubernetes": (
            f"Set it in the Deployment: kubectl patch deployment JOB {_PATCH}. {_ALONE}",
            lambda one: _yaml({"spec": {"replicas": one.instances_each}}),
        ),
        "flink": (
            f"{_OPERATOR} {_REPLICAS} {_ALONE}",
            lambda one: _yaml({"spec": {"taskManager": {"replicas": one.instances_each}}}),
        ),
        "ecs": (
            _SERVICE,
            lambda one: _json(
                {"cluster": "CLUSTER", "service": "JOB", "desiredCount": one.instances_each}
            ),
        ),
    },
}
"""What to do with it and what to paste, by controller and platform. The first platform of a
controller is the one whose rule it is."""
