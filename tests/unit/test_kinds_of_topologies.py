"""Topologies of many tenants, with keys, and generated: what files say, and what a run takes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from include.experiment.levels import levels_of_sources
from include.experiment.problems import problems_of
from include.experiment.run import Run, resolve
from include.experiment.spec import parse_spec
from include.model.errors import SpecError
from include.model.tenant import Intent
from include.workloads.layered import MOST_OPERATORS, NAMES
from include.workloads.pattern import Levels
from include.workloads.topologies import load_topology, parse_topology, topology_names
from tests.builders import run_spec
from tests.builders_prices import write_book
from tests.command_line import said
from tests.problems import problems_told

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


def test_the_level_of_a_source_is_that_of_the_run_times_its_own_from_when_it_joins(shared):
    (point,) = points(shared)
    levels_of = levels_of_sources(point, load_topology(shared))
    assert levels_of["early-1.S1"] == Levels((0.0,), (2.0,))
    late = levels_of["late.S1"]
    assert [late.at(t_s) for t_s in (0, 89, 90, 119, 120, 180)] == [0, 0, 6, 6, 2, 6]
    assert levels_of["early-1.S1"] is levels_of["early-2.S3"], "one pattern is unfolded once"


def test_a_trace_of_a_tenant_lies_beside_its_file_and_is_in_items_of_its_sources(tmp_path):
    """Six items a second, of sources that publish 2 and 1 per second and level unit."""
    file = tmp_path / "shared.yaml"
    (tmp_path / "rate.csv").write_text("time_s,rate_items_per_s\n0,6\n")
    (tmp_path / "job.yaml").write_text(
        "{name: job, emission_period_s: 0.5, sources: {s: {label: s, items_per_level: 1}, "
        "t: {label: t, items_per_level: 0.5}}, operators: {a: {label: a, slo_ms: 5, service_ms: 5, "
        "cpu_shares: 9, memory_mb: 9}}, edges: [{from: s, to: a}, {from: t, to: a}]}"
    )
    file.write_text(
        "{name: shared, tenants: [{name: a, topology: job.yaml, arrivals: {name: trace, "
        "path: rate.csv}}, {name: b, topology: job.yaml}]}"
    )
    spec = run_spec(topology=str(file), pattern="constant", pattern_options={"level": 1})
    levels_of = levels_of_sources(spec, load_topology(str(file)))
    assert {name: levels.peak() for name, levels in levels_of.items()} == {
        "a.s": 2.0, "a.t": 2.0, "b.s": 1.0, "b.t": 1.0,
    }  # fmt: skip


def test_paths_in_a_topology_are_relative_to_it(tmp_path):
    (tmp_path / "rate.csv").write_text("time_s,level\n0,6\n")
    (tmp_path / "mine.yaml").write_text("{based_on: manufacturing}")
    write_book(tmp_path / "book.yaml")
    (tmp_path / "job.yaml").write_text(
        "{name: job, based_on: manufacturing, run_with: {patterns: [{name: trace, path: rate.csv, "
        "scale: {sweep: [1, 2]}}, {name: trace, path: {sweep: [./rate.csv]}, scale: 3}], "
        "calibration: mine.yaml, price_books: [book.yaml, btu10]}}"
    )
    runs = points(str(tmp_path / "job.yaml"))
    assert [one.pattern_options["path"] for one in runs] == [str(tmp_path / "rate.csv")] * 3
    assert runs[0].calibration == str(tmp_path / "mine.yaml")
    assert runs[0].price_books == (str(tmp_path / "book.yaml"), "btu10")
    assert not [problem for run in runs for problem in problems_of(run)]


def test_an_unknown_pattern_of_a_source_is_told_once_per_tenant(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(SHARED.replace("name: stepwise", "name: stepwize"))
    (point,) = points(str(path))
    messages = [message for message in problems_of(point) if "stepwize" in message]
    assert len(messages) == 1
    assert "stepwise" in messages[0]


@pytest.mark.parametrize(
    ("first", "chain"),
    [("mine", "mine.yaml > mine.yaml"), ("a", "a.yaml > b.yaml > a.yaml")],
)
def test_tenants_that_name_their_own_file_are_refused(first, chain, tmp_path):
    for name, other in (("mine", "mine"), ("a", "b"), ("b", "a")):
        tenants = f"[{{name: t, topology: {other}.yaml}}]"
        (tmp_path / f"{name}.yaml").write_text(f"{{name: mine, tenants: {tenants}}}")
    (problem,) = problems_of(run_spec(topology=str(tmp_path / f"{first}.yaml")))
    assert problem == f"tenants name their own file ({chain}); name another topology there"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("operators: {count: {slo_ms: 4}}", "operators: unknown field"),
        ("sources: {s: {items_per_level: 4}}", "sources: unknown field"),
        ("edges: [{from: s, to: count}]", "edges: unknown field"),
    ],
)
def test_what_only_one_job_has_is_refused_of_a_base_of_tenants(text, says):
    (problem,) = problems_told(
        parse_topology, f"name: mine\nbased_on: tenants_diurnal\n{text}", source="mine.yaml"
    )
    assert says in problem


def test_operators_of_a_tenant_are_those_of_one_job():
    tenant = "{name: a, topology: tenants_diurnal, operators: {count: {slo_ms: 4}}}"
    (problem,) = problems_told(
        parse_topology, f"name: mine\ntenants: [{tenant}]", source="mine.yaml"
    )
    assert problem.startswith("tenant a: tenants_diurnal has tenants of its own")


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


WORDS = """
name: words
emission_period_s: 1
sources: {{S1: {{label: Words, items_per_level: 1}}}}
operators:
  count: {{label: Count, slo_ms: 50, cpu_shares: 512, memory_mb: 100, service_ms: 5, {fields}}}
edges: [{{from: S1, to: count}}]
"""


def test_every_wrong_value_is_named_at_once():
    fields = "storage_mb: -1, keyed: {keys: 0, exponent: -1, state_kb: -2}"
    assert problems_told(parse_topology, WORDS.format(fields=fields), source="words.yaml") == [
        "operators.count.storage_mb: input should be greater than or equal to 0, got -1",
        "operator count: keyed.keys must be from 1 to 10000000, got 0",
        "operator count: keyed.exponent must be a number of at least 0, got -1",
        "operator count: keyed.state_kb must be a number of at least 0, got -2",
        "operator count: keyed needs stateful: true",
    ]


OWN_LAYERS = "based_on: layered_10\nname: own\n"


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        (points, SHARED.replace("patterns: [{name: constant, level: 2}]", ""), "patterns: missing"),
        (load_topology, "{name: x, tenants: [{name: a, topology: word_count, instances: 0}]}",
         r"operator a\.\w+: instances must be at least 1, got 0"),
        (load_topology, "{name: x, tenants: [{name: a, topology: linear, count: 900000000}]}",
         "there may be 1000; take fewer tenants"),
        (load_topology, WORDS.format(fields="stateful: true, keyed: {keys: 3, skew: 1}"),
         r"operators\.count\.keyed\.skew: unknown field"),
        (load_topology, OWN_LAYERS + "operators: {o4: fast}",
         "operators.o4: input should be a valid dictionary"),
        (load_topology, OWN_LAYERS + "edges: [o1>o2]", "input should be a valid dictionary"),
        (load_topology, OWN_LAYERS + "edges: [{from: [o1], to: o2}]",
         "from: input should be a valid string"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told(read, text, says, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=says):
        read(str(path))


def _words(topology: str) -> Run:
    return resolve(
        run_spec(controller="threshold", pattern="constant", duration_min=10, topology=topology)
    )


def test_a_run_without_keys_is_stored_as_it_was_before_there_were_any():
    operators = json.loads(_words("manufacturing").to_json())["topology"]["operators"]
    assert all("keyed" not in operator for operator in operators)


@pytest.mark.parametrize(
    ("testbed", "setting"),
    [
        ("simulated", "buffer_items: {split: 9, count: 9, store: 9}"),
        ("flow", "key_groups: {count: 128}"),
    ],
)
def test_check_says_nothing_where_items_are_bound_by_their_keys(testbed, setting, tmp_path):
    (tmp_path / "mine.yaml").write_text(setting)
    spec = tmp_path / "words.yaml"
    spec.write_text(
        "name: words\ntopology: word_count_keyed\ncontrollers: [threshold]\n"
        f"testbed: {testbed}\ncalibration: mine.yaml\n"
    )
    assert "ignored:" not in said("check", spec)


@pytest.mark.parametrize("testbed", ["simulated", "flow"])
def test_check_says_that_a_testbed_ignores_keys(testbed, tmp_path):
    spec = tmp_path / "words.yaml"
    spec.write_text(
        f"name: words\ntopology: word_count_keyed\ncontrollers: [threshold]\ntestbed: {testbed}\n"
    )
    printed = said("check", spec)
    assert printed.splitlines()[-1] == (
        f"ignored: {testbed} ignores keys, their skew and state: count"
    )
    spec.write_text(
        "name: words\ntopology: manufacturing\ncontrollers: [btu]\npatterns: stepwise\n"
    )
    assert "ignored:" not in said("check", spec)
    spec.write_text(spec.read_text() + "testbed: flow\ncalibration: manufacturing_paused\n")
    assert "flow has no pause_on_start_s, pause_on_stop_s" in said("check", spec)
    (tmp_path / "mine.yaml").write_text("based_on: manufacturing\nservice_ms: {o1: 5}\n")
    spec.write_text(spec.read_text().replace("manufacturing_paused", "mine.yaml"))
    assert "mine.yaml, service_ms: unknown operator 'o1'. Did you mean 'O1'?" in said("check", spec)


@pytest.mark.parametrize("operators", [1, 2, 10, 37, 100, 1000])
def test_it_has_so_many_operators_and_about_as_many_items_for_each(operators: int) -> None:
    topology = load_topology(f"layered_{operators}")
    assert len(topology.operators) == operators
    assert list(topology.problems()) == []
    items = topology.items_per_level().values()
    assert 2.5 <= sum(items) / operators <= 3.1  # a source publishes three
    assert min(items) > 0


def test_a_seed_is_a_graph_of_its_own() -> None:
    first, other = load_topology("layered_100"), load_topology("layered_100_2")
    assert first == replace(load_topology("layered_100_1"), name="layered_100")
    assert first.edges != other.edges
    assert first.operators != other.operators


def test_layers_follow_each_other_and_nobody_is_left_out() -> None:
    topology = load_topology("layered_100")
    depth = {op.name: int(op.label.split()[-1]) for op in topology.operators}
    assert max(depth.values()) == 10
    for edge in topology.edges:
        assert depth[edge.target] == depth.get(edge.origin, 0) + 1
    feeding = {edge.origin for edge in topology.edges}
    assert {name for name in depth if name not in feeding} == {
        name for name, layer in depth.items() if layer == 10
    }


def test_a_spec_names_it_and_takes_what_it_says() -> None:
    raw = {"name": "wide", "topology": ["layered_10", "layered_20_5"], "controllers": "fixed"}
    points = list(parse_spec(raw, source="wide").points())
    assert [point.topology for point in points] == ["layered_10", "layered_20_5"]
    run = resolve(points[1])
    assert (run.spec.pattern, run.spec.max_hosts) == ("constant", 1000)
    assert len(run.topology.operators) == len(run.instances_at_peak) == 20
    assert run.calibration["service_ms"] == {
        op.name: op.service_ms for op in run.topology.operators
    }


def test_a_file_may_be_based_on_one(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("based_on: layered_10_3\nname: own\noperators: {o4: {service_ms: 9}}\n")
    topology = load_topology(str(path))
    assert topology.operator["o4"].service_ms == 9
    assert topology.edges == load_topology("layered_10_3").edges
    assert load_topology("layered_10_3").operator["o4"].service_ms != 9
    path.write_text(
        "based_on: layerd\nname: own\noperators: {o4: {service_ms: -1}}\nedges: [{from: o1}]\n"
    )
    base_problem, own_problem, edge_problem = problems_told(load_topology, str(path))
    assert base_problem.startswith("based_on: unknown topology 'layerd'")
    assert own_problem.startswith("operators.o4.service_ms:")
    assert edge_problem == "edges.0.to: missing; add it"
    path.write_text(
        "{based_on: tenants_prioritie, name: own, tenants: [{name: a, topology: linear}]}"
    )
    assert len(problems_told(load_topology, str(path))) == 1


def test_lists_show_some_and_too_many_operators_are_refused() -> None:
    assert set(NAMES) <= set(topology_names())
    with pytest.raises(SpecError, match=f"there may be {MOST_OPERATORS}"):
        load_topology("layered_1001")
    for name in ("layered_0", "layered_", "layered_10_", "layered_ten", "layered_10_-1"):
        with pytest.raises(SpecError, match="layered_10"):
            load_topology(name)
