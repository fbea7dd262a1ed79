"""Topologies of many tenants, what files say their runs take, and levels of sources."""

from __future__ import annotations

import pytest

from include.experiment.levels import levels_of_sources
from include.experiment.problems import problems_of
from include.experiment.run import resolve
from include.experiment.spec import parse_spec
from include.model.errors import SpecError
from include.model.tenant import Intent
from include.workloads.pattern import Levels, product
from include.workloads.topologies import load_topology

SHARED = """
name: shared
run_with:
  flavor: docker-8cpu-16gb
  patterns: [{name: constant, level: 2}]
  btus_min: [5]
  duration_min: 10
  monitor_every_s: 10
  hosts: 2
  max_hosts: 3
  price_books: [per_second]
tenants:
  - name: early
    count: 2
    topology: manufacturing
    intent: {latency_ms: 5000, max_utility: 35}
    instances: {O1: 2}
  - name: late
    topology: manufacturing
    arrivals: {name: stepwise, levels: [1, 3], hold_s: 60}
    joins_s: 90
    rate: 0.5
    instances: 3
"""


@pytest.fixture
def shared(tmp_path):
    path = tmp_path / "shared.yaml"
    path.write_text(SHARED)
    return str(path)


def points(topology, **changes):
    raw = {"name": "x", "controllers": ["threshold"], "topology": topology, **changes}
    return list(parse_spec(raw, source="x").points())


def test_every_tenant_gets_its_own_copy_of_the_topology(shared):
    topology = load_topology(shared)
    assert [tenant.name for tenant in topology.tenants] == ["early-1", "early-2", "late"]
    assert len(topology.operators) == 27
    assert topology.operator["early-2.O1"].instances_at_start == 2
    assert topology.operator["early-2.O2"].instances_at_start == 1
    assert topology.operator["late.O9"].instances_at_start == 3
    assert topology.tenants[0].intent == Intent(latency_ms=5000, max_utility=35)
    assert topology.sinks("late") == ("late.O8",)
    per_second = topology.items_per_level()
    assert per_second["early-1.O6"] == pytest.approx(10 / 0.48)
    assert per_second["late.O6"] == pytest.approx(0.5 * 10 / 0.48)


def test_a_spec_takes_what_the_topology_says_unless_it_says_otherwise(shared):
    (point,) = points(shared)
    assert (point.pattern, point.pattern_options) == ("constant", {"level": 2})
    assert (point.btu_min, point.duration_min, point.monitor_every_s) == (5, 10, 10)
    assert (point.hosts, point.max_hosts, point.price_books) == (2, 3, ("per_second",))
    (point,) = points(shared, btus_min=10, patterns="stepwise")
    assert (point.pattern, point.btu_min, point.hosts) == ("stepwise", 10, 2)


def test_without_a_pattern_anywhere_the_spec_says_so(tmp_path):
    bare = tmp_path / "bare.yaml"
    text = SHARED.replace("patterns: [{name: constant, level: 2}]", "")
    bare.write_text(text)
    with pytest.raises(SpecError, match="patterns: missing"):
        points(str(bare))


def test_the_level_of_a_source_is_that_of_the_run_times_its_own_from_when_it_joins(shared):
    (point,) = points(shared)
    levels_of = levels_of_sources(point, load_topology(shared))
    assert levels_of["early-1.S1"] == Levels((0.0,), (2.0,))
    late = levels_of["late.S1"]
    assert [late.at(t_s) for t_s in (0, 89, 90, 119, 120, 180)] == [0, 0, 6, 6, 2, 6]
    assert levels_of["early-1.S1"] is levels_of["early-2.S3"], "one pattern is unfolded once"


def test_the_product_of_levels():
    result = product(Levels((0.0, 10.0), (1.0, 2.0)), Levels((5.0, 10.0), (3.0, 4.0)))
    assert result == Levels((0.0, 5.0, 10.0), (0.0, 3.0, 8.0))


def test_an_unknown_pattern_of_a_source_is_told_once_per_tenant(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(SHARED.replace("name: stepwise", "name: stepwize"))
    (point,) = points(str(path))
    messages = [message for message in problems_of(point) if "stepwize" in message]
    assert len(messages) == 1
    assert "stepwise" in messages[0]


def test_a_run_of_tenants_deploys_on_the_hosts_it_is_given(shared):
    run = resolve(points(shared, calibration="manufacturing")[0])
    assert run.setting.hosts_at_start == 2
    assert run.setting.max_hosts == 3
    assert run.instances_at_peak["early-1.O1"] >= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latency_ms": -1}, "latency_ms must be above 0"),
        ({"juice": 1.5}, "juice must be above 0 and at most 1"),
        ({}, "an intent needs latency_ms, juice or both"),
        ({"juice": 1, "max_utility": 0}, "max_utility must be above 0"),
        ({"juice": 1, "points": ((0.0, 0.5), (1.0, 0.2))}, "points must rise"),
    ],
)
def test_what_an_intent_cannot_be(change, message):
    assert any(message in message_found for message_found in Intent(**change).problems())
