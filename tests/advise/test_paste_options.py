"""What is pasted for Flink's autoscaler has names and types of its published options."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from include.advise.candidates import policy
from include.advise.paste import configuration
from include.advise.replay import ReplayConditions

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


def pasted(**asked: int) -> dict[str, str]:
    made = policy("flink-autoscaler", asked, CONDITIONS)
    options: dict[str, str] = yaml.safe_load(configuration(made, CONDITIONS)[1])
    return options


def test_every_option_that_is_pasted_is_known_with_its_type() -> None:
    assert len(pasted()) == 10
    assert wrong(pasted()) == []
    assert pasted(key_groups=24) == pasted() | {"pipeline.max-parallelism": "24"}
    assert wrong(pasted(key_groups=24)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("job.autoscaler.metric.window", "60 s"), ("job.autoscaler.enabled", "yes")],
)
def test_a_misspelt_option_or_value_fails(name: str, value: str) -> None:
    assert wrong({**pasted(), name: value}) == [name]


REAL = Path(os.environ.get("TIDEBENCH_TEST_DATA", "TIDEBENCH_TEST_DATA is not set"))
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
    made = policy("keda", {"items_each": items_each}, CONDITIONS)
    written = yaml.safe_load(configuration(made, CONDITIONS)[1])
    jsonschema.validate(written, schema)
    assert written["spec"]["triggers"][0]["metadata"]["value"] == f"{int(items_each)}"
    for wrong_ in ({"maxReplicas": 3}, {"maxReplicaCount": "3"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(written | {"spec": written["spec"] | wrong_}, schema)
