"""What to paste of a policy: for each platform, with names and types of published options."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from include.advise.candidates import Policy, fixed, policy
from include.advise.paste import configuration, platforms_of, to_stop
from include.advise.replay import ReplayConditions
from include.advise.request import PLATFORMS
from tests.recorded import REAL

PUBLISHED = {
    "catch-up.duration": "Duration",
    "enabled": "Boolean",
    "metrics.window": "Duration",
    "restart.time": "Duration",
    "scale-down.interval": "Duration",
    "scale-down.max-factor": "Double",
    "scale-up.max-factor": "Double",
    "scaling.enabled": "Boolean",
    "stabilization.interval": "Duration",
    "utilization.max": "Double",
    "utilization.min": "Double",
    "utilization.target": "Double",
    "vertex.max-parallelism": "Integer",
    "vertex.min-parallelism": "Integer",
}
"""apache/flink-kubernetes-operator (Apache-2.0), the options of scaling in
docs/layouts/shortcodes/generated/auto_scaler_configuration.html at commit 6e9caeb4."""
WRITTEN = {
    "Duration": r"\d+(\.\d+)? s",
    "Boolean": r"true|false",
    "Double": r"\d+(\.\d+)?",
    "Integer": r"\d+",
}
CONDITIONS = ReplayConditions(instances_at_start=4, max_instances=8)


def wrong(options: dict[str, str]) -> list[str]:
    """The options whose name is none that is known, or whose value has another type."""
    known = {f"job.autoscaler.{name}": kind for name, kind in PUBLISHED.items()}
    known["pipeline.max-parallelism"] = "Integer"  # of Flink itself
    return [
        name
        for name, value in options.items()
        if name not in known or not re.fullmatch(WRITTEN[known[name]], value)
    ]


def paste(name: str, *platforms: str, **options: Any) -> tuple[str, str]:
    """What to do and what to paste of a policy, on any platform unless some are named."""
    made = policy(name, options, CONDITIONS)
    return configuration(made, CONDITIONS, platforms or PLATFORMS)


def pasted(**asked: int) -> dict[str, str]:
    options: dict[str, str] = yaml.safe_load(paste("flink-autoscaler", **asked)[1])
    return options


def test_every_option_that_is_pasted_is_known_with_its_type() -> None:
    assert len(pasted()) == 13
    assert wrong(pasted()) == []
    assert pasted(key_groups=24) == pasted() | {"pipeline.max-parallelism": "24"}
    assert wrong(pasted(key_groups=24)) == []


def test_an_hpa_is_pasted_as_kubernetes_would_take_it() -> None:
    _, text = paste("hpa", target_cpu=0.35)

    written = yaml.safe_load(text)
    spec = written["spec"]
    assert spec["maxReplicas"] == 8
    assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 35
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 300
    kubernetes_validate.validate(written, "1.29", strict=True)


def test_aws_is_given_the_limits_and_the_policy() -> None:
    """Members of RegisterScalableTarget and PutScalingPolicy (botocore 1.44.5,
    data/application-autoscaling/2016-02-06/service-2.json)."""
    _, text = paste("target-tracking")

    parts = dict(part.split("\n", 1) for part in text.removeprefix("# ").split("\n# "))
    documents = {name: json.loads(document) for name, document in parts.items()}
    target = {"ServiceNamespace", "ResourceId", "ScalableDimension"}
    assert {name: set(members) for name, members in documents.items()} == {
        "register-scalable-target": target | {"MinCapacity", "MaxCapacity"},
        "put-scaling-policy": target
        | {"PolicyName", "PolicyType", "TargetTrackingScalingPolicyConfiguration"},
    }
    assert documents["register-scalable-target"]["MaxCapacity"] == 8
    tracking = documents["put-scaling-policy"]["TargetTrackingScalingPolicyConfiguration"]
    assert tracking["TargetValue"] == 50.0
    assert set(tracking) == {
        "TargetValue", "PredefinedMetricSpecification", "ScaleOutCooldown", "ScaleInCooldown",
        "DisableScaleIn",
    }  # fmt: skip


def test_keda_scales_by_the_records_for_an_instance() -> None:
    """Field names of kedacore/keda, config/crd/bases/keda.sh_scaledobjects.yaml; metadata is text
    there, and the behaviour that of autoscaling/v2."""
    _, plain = paste("keda", items_each=185.0)
    assert set(yaml.safe_load(plain)["spec"]) == {
        "scaleTargetRef", "minReplicaCount", "maxReplicaCount", "triggers",
    }  # fmt: skip
    _, text = paste("keda", items_each=185.0, behavior={})

    written = yaml.safe_load(text)
    assert (written["apiVersion"], written["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    spec = written["spec"]
    (trigger,) = spec["triggers"]
    assert all(isinstance(value, str) for value in trigger["metadata"].values())
    assert (trigger["type"], trigger["metadata"]["value"]) == ("rabbitmq", "185")
    assert spec["maxReplicaCount"] == 8
    hpa = yaml.safe_load(paste("hpa")[1])
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    hpa["spec"]["behavior"] = behavior
    kubernetes_validate.validate(hpa, "1.29", strict=True)


def test_of_a_rule_that_kubernetes_does_not_have_the_options_are_pasted() -> None:
    assert "controller: tide" in paste("tide", "kubernetes")[1]


def test_the_band_of_flink_is_pasted_as_its_ends() -> None:
    _, text = paste("flink-autoscaler", target_share=0.35, boundary=0.15)

    options = yaml.safe_load(text)
    ends = [options[f"job.autoscaler.utilization.{end}"] for end in ("min", "target", "max")]
    assert [float(one) for one in ends] == pytest.approx([0.2, 0.35, 0.5])
    assert options["job.autoscaler.vertex.max-parallelism"] == "8"
    assert "job.autoscaler.enabled" in options


@pytest.mark.parametrize(
    ("asked", "columns", "provider", "platforms"),
    [
        ("ecs", ["task_managers"], "gce", ("ecs",)),
        ("", ["throughput_per_s", "task_managers"], "aws", ("flink",)),
        ("", ["flink_taskmanager_job_task_numRecordsIn"], "gce", ("flink",)),
        ("", ["sum(kube_deployment_status_replicas)"], "AWS", ("kubernetes",)),
        ("", ["rate", "running_pods"], "aws", ("kubernetes",)),
        ("", ["rate", "instances"], "aws", ("kubernetes", "ecs")),
        ("", ["rate", "instances"], "gce", ("kubernetes",)),
        ("", ["tripods"], "", ("kubernetes",)),
    ],
)
def test_the_platform_is_as_asked_or_recorded_or_that_of_the_prices(
    asked: str, columns: list[str], provider: str, platforms: tuple[str, ...]
) -> None:
    assert platforms_of(asked, columns, provider) == platforms


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", ["hpa", "target-tracking", "keda", "flink-autoscaler", "fixed"])
def test_what_is_pasted_fits_where_the_job_runs(name: str, platform: str) -> None:
    asked = fixed(4) if name == "fixed" else policy(name, {}, CONDITIONS)

    told, text = configuration(asked, CONDITIONS, (platform,))

    for word, only in (("ecs", "ecs"), ("ECS", "ecs"), ("FlinkDeployment", "flink")):
        assert platform == only or word not in told + text
    if "No autoscaler" in told:
        assert (name, platform) in {
            ("keda", "ecs"), ("flink-autoscaler", "ecs"), ("flink-autoscaler", "kubernetes"),
        }  # fmt: skip
        assert yaml.safe_load(text)["controller"] == name


def test_slots_become_task_managers_where_those_are_scaled() -> None:
    def of_flink(asked: Policy) -> dict[str, Any]:
        *_, last = yaml.safe_load_all(configuration(asked, CONDITIONS, ("flink",), slots_each=4)[1])
        return dict(last)

    assert of_flink(fixed(7))["spec"]["taskManager"]["replicas"] == 2
    hpa = of_flink(policy("hpa", {"min_instances": 5}, CONDITIONS))["spec"]
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (2, 2)
    rates = {one["type"]: one["value"] for one in hpa["behavior"]["scaleUp"]["policies"]}
    assert rates == {"Pods": 1, "Percent": 100}
    keda = of_flink(policy("keda", {"items_each": 10.0}, CONDITIONS))["spec"]
    assert keda["triggers"][0]["metadata"]["value"] == "40"
    assert keda["maxReplicaCount"] == 2
    ours = of_flink(policy("flink-autoscaler", {}, CONDITIONS))
    assert ours["job.autoscaler.vertex.max-parallelism"] == "8"  # counts slots itself


def test_a_deployment_or_a_service_of_task_managers_counts_these_too() -> None:
    def written(asked: Policy, platform: str) -> str:
        return configuration(asked, CONDITIONS, (platform,), slots_each=4)[1]

    assert yaml.safe_load(written(fixed(7), "kubernetes"))["spec"]["replicas"] == 2
    assert json.loads(written(fixed(7), "ecs"))["desiredCount"] == 2
    tracking = policy("target-tracking", {}, CONDITIONS)
    assert yaml.safe_load(written(tracking, "kubernetes"))["spec"]["maxReplicas"] == 2
    assert '"MaxCapacity": 2' in written(tracking, "ecs")


def test_what_was_replayed_with_bounds_of_its_own_is_pasted_with_them() -> None:
    hpa = yaml.safe_load(paste("hpa", "kubernetes", min_instances=6)[1])["spec"]
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (6, 8)
    own = {"utilization_max": 0.6, "utilization_min": 0.2, "min_instances": 4, "most_up": 2.0}
    options = yaml.safe_load(paste("flink-autoscaler", **own)[1])
    names = ("utilization.max", "utilization.min", "vertex.min-parallelism", "scale-up.max-factor")
    assert [options[f"job.autoscaler.{name}"] for name in names] == ["0.6", "0.2", "4", "2"]


def test_a_rule_that_no_autoscaler_of_flink_has_is_run_by_act() -> None:
    _, text = paste("tide", "flink", end_to_end=1.0)

    dry, _, real = text.splitlines()
    assert real == f"{dry} --really"
    assert "--controller tide --set end_to_end=1.0 --max-slots 8 --limits" in dry


def test_what_scales_the_job_now_has_to_stop_before_another_policy_is_applied() -> None:
    hpa, keda = policy("hpa", {}, CONDITIONS), policy("keda", {}, CONDITIONS)

    assert "First delete or suspend what scales the job now (hpa)" in to_stop(fixed(4), hpa)
    assert "First delete" in to_stop(hpa, keda)
    assert "If something scales the job now" in to_stop(hpa, None)
    assert to_stop(hpa, hpa) == to_stop(hpa, fixed(4)) == ""


def test_kubernetes_would_take_what_is_nearest_to_target_tracking() -> None:
    told, text = paste("target-tracking", "kubernetes", target_share=0.6)
    _, flink = paste("target-tracking", "flink", target_share=0.6)

    written = yaml.safe_load(text)
    kubernetes_validate.validate(written, "1.29", strict=True)
    assert "was not replayed" in told
    spec = written["spec"]
    assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 60
    looks_back_s = {way: one["stabilizationWindowSeconds"] for way, one in spec["behavior"].items()}
    assert looks_back_s == {"scaleUp": 180, "scaleDown": 900}
    reactive, scaler = yaml.safe_load_all(flink)
    assert reactive["spec"]["flinkConfiguration"] == {"scheduler-mode": "REACTIVE"}
    assert scaler["spec"].pop("scaleTargetRef") == {
        "apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment", "name": "JOB",
    }  # fmt: skip
    spec.pop("scaleTargetRef")
    assert scaler == written


def test_a_service_of_ecs_is_given_the_nearest_to_an_hpa() -> None:
    told, text = paste("hpa", "ecs", target_cpu=0.35)

    assert "was not replayed" in told
    tracking = json.loads(text.partition("# put-scaling-policy\n")[2])
    assert tracking["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 35.0
    service = json.loads(configuration(fixed(4), CONDITIONS, ("ecs",))[1])
    assert service == {"cluster": "CLUSTER", "service": "JOB", "desiredCount": 4}


def test_a_fixed_size_is_pasted_as_replicas() -> None:
    text = configuration(fixed(6), CONDITIONS)[1]
    assert yaml.safe_load(text) == {"spec": {"replicas": 6}}


CRD = REAL / "schemas" / "keda.sh_scaledobjects.yaml"


def closed(schema: Any) -> Any:
    """A schema of Kubernetes as its API server reads it: fields that it does not name are wrong."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(one) for name, one in schema.items()}
    if isinstance(schema.get("properties"), dict):
        inner.setdefault("additionalProperties", False)
    return inner


@pytest.mark.recorded
@pytest.mark.skipif(not CRD.is_file(), reason="it has no schemas/keda.sh_scaledobjects.yaml")
@pytest.mark.parametrize("items_each", [1.0, 185.0, 1e6])
def test_keda_would_take_the_scaled_object(items_each: float) -> None:
    """By config/crd/bases of kedacore/keda, commit 8b4f083."""
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema = closed(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}  # that of every object
    written = yaml.safe_load(paste("keda", items_each=items_each)[1])
    jsonschema.validate(written, schema)
    assert written["spec"]["triggers"][0]["metadata"]["value"] == f"{int(items_each)}"
