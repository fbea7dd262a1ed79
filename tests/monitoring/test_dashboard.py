"""The dashboard names only metrics that the endpoint has, and Grafana's own types know it all."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from include.runs.monitoring.collector import METRICS, OF_ALL, OF_RUN
from tests.conftest import REPOSITORY

DASHBOARD = REPOSITORY / "infra" / "grafana" / "runs.json"


@pytest.fixture
def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return content


def lost(given: Any, kept: Any, where: str = "") -> list[str]:
    """What of ``given`` is missing or another value in ``kept``."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [
            one
            for key in given
            for one in lost(given[key], kept.get(key, "missing"), f"{where}/{key}")
        ]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = enumerate(zip(given, kept, strict=True))
        return [one for i, pair in pairs for one in lost(*pair, f"{where}/{i}")]
    return [] if given == kept else [where]


def through_types(given: dict[str, Any]) -> Any:
    register_default_plugins()
    return json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(given)))


def test_grafanas_types_keep_everything(dashboard: dict[str, Any]) -> None:
    assert lost(dashboard, through_types(dashboard)) == []


def test_what_grafana_does_not_know_is_found(dashboard: dict[str, Any]) -> None:
    wrong = copy.deepcopy(dashboard)
    wrong["panels"][0]["gridPos"]["width"] = 3
    wrong["refreshes"] = "10s"
    found = lost(wrong, through_types(wrong))
    assert sorted(found) == ["/panels/0/gridPos/width", "/refreshes"]


def test_every_metric_is_one_of_the_endpoint(dashboard: dict[str, Any]) -> None:
    named = set(re.findall(r"tidebench_(\w+)", json.dumps(dashboard)))
    assert named <= {*METRICS, *OF_ALL}
    assert len(named) > 10


def test_every_label_in_a_legend_is_one_of_its_metric(dashboard: dict[str, Any]) -> None:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            metrics = re.findall(r"tidebench_(\w+)", target["expr"])
            known = set.union(*({*OF_RUN, *METRICS[name][1]} for name in metrics))
            asked = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert asked <= known, panel["title"]


def test_recommended_and_actual_instances_are_in_one_panel(dashboard: dict[str, Any]) -> None:
    together = [
        panel["title"]
        for panel in dashboard["panels"]
        if {
            "tidebench_recommended_instances",
            "tidebench_instances",
            "tidebench_advised_instances",
        }
        <= set(re.findall(r"tidebench_\w+", str(panel["targets"])))
    ]
    assert "Instances: recommended and actual" in together


def test_no_two_panels_lie_on_each_other(dashboard: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
