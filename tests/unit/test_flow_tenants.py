"""What tenants see on the fluid testbed, and what its parameters mean."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from include.model.tenant import Intent, Tenant
from include.model.topology import Edge, Topology
from include.runs.measurements.store import to_arrow
from include.testbeds import TESTBEDS
from include.testbeds.flow.arrivals import amounts
from include.testbeds.flow.calibration import PARAMETERS, FlowCalibration, FlowFaults
from include.testbeds.flow.tenants import gamma_p95
from include.testing.builders import an_operator
from include.workloads.pattern import Levels
from tests.builders import measured_at, seen_at
from tests.kernel.flows import a_chain, a_config, started
from tests.problems import problems_told

MEETS = Intent(latency_ms=250, max_utility=10)


def a_tenant(name="a", intent=MEETS, joins_s=0.0, **changes) -> Topology:
    """A chain of two operators that belongs to a tenant; everything carries its name."""
    chain = a_chain(f"{name}.O1", f"{name}.O2", tenant=name, **changes)
    source = replace(chain.sources[0], name=f"{name}.S1", tenant=name)
    edges = (replace(chain.edges[0], origin=source.name), *chain.edges[1:])
    tenant = Tenant(name=name, intent=intent, joins_s=joins_s)
    return replace(chain, sources=(source,), edges=edges, tenants=(tenant,))


def together(*topologies: Topology) -> Topology:
    """Tenants on one cluster."""
    parts = {
        part: tuple(entry for topology in topologies for entry in getattr(topology, part))
        for part in ("operators", "sources", "edges", "tenants")
    }
    return replace(topologies[0], **parts)


def test_latency_is_service_and_network_along_the_path():
    calibration = {"latency_ms": 20, "local_latency_ms": 3}
    for hosts, between_ms in ((1, 3), (2, 20)):
        testbed = started(a_config(a_tenant(), calibration=calibration), hosts=hosts)
        sample = seen_at(testbed, 60).tenants["a"]
        # From the source, which is elsewhere; between the operators; and 100 ms at each.
        assert sample.latency_ms == pytest.approx(20 + between_ms + 2 * 100)
        assert sample.tail_latency_ms > sample.latency_ms
        assert sample.juice == pytest.approx(1.0)


def test_juice_is_the_share_that_the_bottleneck_processes():
    testbed = started(a_config(a_tenant(), 16.0))
    observation = seen_at(testbed, 600)
    assert observation.tenants["a"].juice == pytest.approx(10 / 16)
    assert observation.tenants["a"].latency_ms > 100_000
    assert observation.operators["a.O1"].capacity == 1.0


def test_juice_of_a_split_follows_example_1_of_the_paper():
    # Fig. 1: A sends 16K, half to each of B and C; C processes 6K of its 8K, D all it gets.
    def operator(name, service_ms):
        return an_operator(name, service_ms=service_ms, tenant="t")

    operators = [operator(n, ms) for n, ms in (("A", 50), ("B", 50), ("C", 1000 / 6), ("D", 1))]
    edges = (("S1", "A"), ("A", "B"), ("A", "C"), ("B", "D"), ("C", "D"))
    topology = replace(
        a_chain("A"),
        operators=tuple(operators),
        sources=(replace(a_chain("A").sources[0], tenant="t"),),
        edges=tuple(Edge(origin=origin, target=target) for origin, target in edges),
        tenants=(Tenant(name="t"),),
    )
    testbed = started(a_config(topology, 8.0))
    assert seen_at(testbed, 600).tenants["t"].juice == pytest.approx(0.875, abs=0.001)


def test_the_rows_of_tenants_say_what_they_are_worth():
    slow = a_tenant("b", intent=Intent(latency_ms=50, max_utility=8))
    topology = together(a_tenant("a"), slow, a_tenant("c", intent=None))
    testbed = started(a_config(topology), hosts=2)
    table = measured_at(testbed, 30)["tenant"]
    assert to_arrow("tenant", table).num_rows == 6
    last = {name: i for i, name in enumerate(table["tenant"])}
    worth = {name: (table["utility"][i], table["max_utility"][i]) for name, i in last.items()}
    assert worth == {"a": (10, 10), "b": (pytest.approx(8 * 50 / 200), 8), "c": (0, 0)}


def test_a_tenant_is_not_there_before_it_joins_and_has_no_latency_before_anything_left():
    topology = together(a_tenant("a"), a_tenant("b", joins_s=60.0))
    config = a_config(topology)
    levels_of = {"a.S1": Levels((0.0,), (5.0,)), "b.S1": Levels((75.0,), (5.0,))}
    testbed = started(replace(config, levels_of=levels_of))
    samples = {}
    for t_s in (45, 75, 90):
        samples[t_s] = seen_at(testbed, t_s).tenants
    assert list(samples[45]) == ["a"]
    assert samples[75]["b"].latency_ms is None
    assert math.isnan(testbed.take_measurements()["tenant"]["latency_ms"][-3])
    assert samples[90]["b"].latency_ms == pytest.approx(200)


@pytest.mark.parametrize("shape", [1.0, 4.0, 30.0])
def test_the_tail_is_that_of_a_gamma_distribution(shape):
    drawn = np.random.default_rng(1).gamma(shape, 2.0, 400_000)
    assert gamma_p95(2 * shape, 4 * shape) == pytest.approx(np.quantile(drawn, 0.95), rel=0.02)
    assert gamma_p95(5.0, 0.0) == 5.0


def test_amounts_are_the_integral_of_the_level():
    levels = Levels((0.0, 1.5, 4.0), (2.0, 4.0, 0.0))
    assert amounts(levels, 6.0, 6, 1.0).tolist() == [2, 3, 4, 4, 0, 0]
    assert amounts(Levels((2.5,), (4.0,)), 4.0, 4, 1.0).tolist() == [0, 0, 2, 4]


def test_a_source_fluctuates_around_its_rate_and_differently_for_each_seed():
    items = []
    for seed in (1, 1, 2):
        calibration = {"fluctuation_cv": 0.2, "fluctuation_s": 10}
        config = a_config(a_chain("O1"), 100.0, calibration=calibration, seed=seed)
        published = TESTBEDS["flow"].build(config).queues._published[:, 0]
        items.append(np.diff(published[::10]) / 1e6)
    np.testing.assert_array_equal(items[0], items[1])
    assert (items[0] != items[2]).all()
    assert items[0].mean() == pytest.approx(1000, rel=0.05)
    assert items[0].std() == pytest.approx(200, rel=0.15)


def test_the_default_file_lists_the_defaults_and_every_file_loads():
    plain = PARAMETERS.load_calibration("default").model_dump()
    assert plain | {"local_latency_ms": None} == FlowCalibration().model_dump()
    for name in PARAMETERS.calibration_names():
        PARAMETERS.load_calibration(name)
    # Service times that were fitted for the per-item testbed hold here, too.
    name = PARAMETERS.calibration_for("manufacturing_preprint")
    assert PARAMETERS.load_calibration(name).service_ms["O1"] > 500


def test_a_file_based_on_a_calibration_says_what_differs(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("based_on: manufacturing\nservice_ms: {O2: 70}\nlatency_ms: 0\n")
    base, own = (PARAMETERS.load_calibration(name) for name in ("manufacturing", str(mine)))
    assert own == base.model_copy(
        update={"service_ms": base.service_ms | {"O2": 70.0}, "latency_ms": 0}
    )
    mine.write_text("based_on: manufacturig\nlatancy_ms: 3\nstep_s: 0\n")
    base_problem, *own_problems = problems_told(PARAMETERS.load_calibration, str(mine))
    assert "based_on: unknown" in base_problem
    assert "Did you mean 'manufacturing'" in base_problem
    assert {problem.partition(":")[0] for problem in own_problems} == {"latancy_ms", "step_s"}


def test_an_outage_begins_before_it_ends():
    with pytest.raises(ValueError, match="begins before it ends"):
        FlowFaults(outages=[(60, 30)])
