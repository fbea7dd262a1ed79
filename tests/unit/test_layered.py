"""Generated topologies: any number of operators, the same ones whenever they are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from include.experiment.run import resolve
from include.experiment.spec import parse_spec
from include.model.errors import SpecError
from include.workloads.layered import MOST_OPERATORS, NAMES
from include.workloads.topologies import load_topology, topology_names


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
    path.write_text("based_on: layerd\nname: own\noperators: {o4: {service_ms: -1}}\n")
    with pytest.raises(SpecError) as refused:
        load_topology(str(path))
    base_problem, own_problem = refused.value.problems
    assert base_problem.startswith("based_on: unknown topology 'layerd'")
    assert own_problem.startswith("operators.o4.service_ms:")
    path.write_text(
        "{based_on: tenants_prioritie, name: own, tenants: [{name: a, topology: linear}]}"
    )
    with pytest.raises(SpecError) as refused:
        load_topology(str(path))
    assert len(refused.value.problems) == 1


def test_lists_show_some_and_too_many_operators_are_refused() -> None:
    assert set(NAMES) <= set(topology_names())
    with pytest.raises(SpecError, match=f"there may be {MOST_OPERATORS}"):
        load_topology("layered_1001")
    for name in ("layered_0", "layered_", "layered_10_", "layered_ten", "layered_10_-1"):
        with pytest.raises(SpecError, match="layered_10"):
            load_topology(name)
