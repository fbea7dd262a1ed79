"""The fluid testbed against exact answers: conservation, cuts, closed formulas, its sibling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.model.decision import LeaseHost, MigrateInstance, StartInstance, StopInstance
from include.model.topology import Edge, Source
from include.testbeds import TESTBEDS
from include.testbeds.flow.arrays import ARRIVED, COMPLETED
from include.testing.builders import SMALL, a_topology, an_operator, decision
from include.workloads.pattern import Levels
from tests.builders import PAPER, manufacturing, measured_at, rows_cut, seen_at
from tests.kernel.flows import SHARED, a_chain, a_config, rows_of, started
from tests.kernel.test_queueing_theory import erlang_c_wait_s
from tests.kernel.worlds import printed

SERVICE_MS = {
    "O1": 992,
    "O2": 60,
    "O3": 88,
    "O4": 88,
    "O5": 88,
    "O6": 20,
    "O7": 7,
    "O8": 5,
    "O9": 6,
}
NOISY = {
    "service_ms": SERVICE_MS,
    "service_cv": 0.5,
    "latency_ms": 10,
    "stalls_per_hour": 30,
    "fluctuation_cv": 0.3,
    "cpu_noise": 0.02,
    "overhead_cores": 0.01,
    "background_cores": 0.5,
    "image_pull_s": [1, 9],
    "drain_s": 12,
    "rescale_pause_s": 0.7,
    "sample_every_items": 7,
}
FAULTY = {
    "instance_crashes_per_hour": 20,
    "monitoring_gaps_per_hour": 20,
    "monitoring_gap_s": [20, 40],
    "outages": [[200, 220]],
    "cpu_spikes": [[100.5, 180.2, 6]],
}
MOVES = {
    60: [LeaseHost("shared", "x"), StartInstance("O1", "x"), MigrateInstance("O6-6", "x")],
    123: [StartInstance("O2", "host-1"), StopInstance("O1-10"), MigrateInstance("O7-7", "host-2")],
    210: [StopInstance("O2-12"), MigrateInstance("O1-1", "host-2")],
}


def a_plant():
    """Two hosts of manufacturing with everything on that can be random."""
    topology = manufacturing()
    operators = tuple(
        replace(op, service_ms=1.0, stateful=op.name in ("O6", "O7"), state_mb=120.0)
        for op in topology.operators
    )
    levels = Levels((0.0, 90.0), (3.0, 6.0))
    config = a_config(
        replace(topology, operators=operators),
        levels,
        calibration=NOISY,
        faults=FAULTY,
        duration_s=300.0,
    )
    return started(config)


def assert_nothing_is_lost(testbed):
    """Every edge carried its share of what its origin completed; the rest waits."""
    queues = testbed.queues
    counts, sent = queues.state.counts, queues.state.sent
    published = queues._published[min(queues.step, len(queues._published) - 1)]
    into = np.zeros(len(queues.names), dtype=np.int64)
    for e, (_, target) in enumerate(queues.edges):
        node, (out, per) = queues.graph.origin[e], queues.graph.ratio[e]
        operators = len(queues.names)
        base = counts[node, COMPLETED] if node < operators else published[node - operators]
        assert sent[e] == base * out // per
        into[queues.names.index(target)] += sent[e]
    np.testing.assert_array_equal(counts[:, ARRIVED], into)
    queued = [
        queues.state.chunk_items[o, tail - 1, 1] - counts[o, COMPLETED] if tail > head else 0
        for o, (head, tail) in enumerate(queues.state.chunk_range.tolist())
    ]
    assert (counts[:, ARRIVED] - counts[:, COMPLETED]).tolist() == queued


def run_cut(cuts_s):
    """All rows of the plant, when it is stored and taken up again at these times."""
    rows, testbed = rows_cut(a_plant(), MOVES, cuts_s, 300)
    assert_nothing_is_lost(testbed)
    return rows


@pytest.fixture(scope="module")
def uncut():
    rows = run_cut([])
    events = set(rows["event"]["event"].to_pylist())
    assert {"instance_crash", "monitoring_gap", "cpu_spike"} <= events
    assert set(rows["scaling_activity"]["activity"].to_pylist()) >= {"upscaling", "migration"}
    return rows


@settings(max_examples=15, deadline=None)
@given(cuts_ms=st.lists(st.integers(1, 299_999), max_size=6, unique=True))
def test_the_fluid_does_not_depend_on_where_time_is_cut(uncut, cuts_ms):
    assert run_cut([cut_ms / 1000 for cut_ms in cuts_ms]) == uncut


@settings(max_examples=20, deadline=None)
@given(
    ratios=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 300)), min_size=1, max_size=5),
    level=st.floats(0.01, 400),
    moves=st.lists(st.tuples(st.integers(1, 170), st.integers(0, 4)), max_size=8),
)
def test_no_amount_is_lost_or_made_up(ratios, level, moves):
    names = [f"O{number}" for number in range(len(ratios))]
    origins = ["S1", *names]
    edges = [
        Edge(origin=origins[i], target=name, items_out=ratios[i][0], items_in=ratios[i][1])
        for i, name in enumerate(names)
    ]
    edges += [Edge(origin="S2", target=name, items_out=2, items_in=3) for name in names]
    source = Source(name="S2", label="S2", items_per_level=0.7, size_bytes=1)
    chain = a_chain(*names, service_ms=30.0, stateful=True, state_mb=99.0)
    topology = replace(chain, edges=tuple(edges), sources=(*chain.sources, source))
    testbed = started(a_config(topology, level), hosts=2)
    for t_s, which in sorted(moves):
        testbed.advance_to(t_s)
        running = [
            instance for instance in testbed.observe().instances.values() if not instance.stopping
        ]
        chosen = running[which % len(running)]
        other = "host-2" if chosen.host == "host-1" else "host-1"
        start = StartInstance(chosen.operator, other)
        testbed.apply(decision(start, MigrateInstance(chosen.instance, other)))
    testbed.advance_to(180)
    assert_nothing_is_lost(testbed)


def test_a_long_backlog_is_kept_in_few_chunks_and_in_order():
    levels = Levels((0.0, 1000.0), (20.0, 0.0))
    testbed = started(a_config(a_chain("O1"), levels))
    taken = measured_at(testbed, 3000)["processing_duration"]
    # 20 a second arrive for 1,000 s, 10 are served: item k waits k / 20 s.
    expected_s = np.arange(20_000) / 20
    assert taken["wait_ms"] / 1000 == pytest.approx(expected_s, abs=2.5)
    assert (np.diff(taken["time_s"]) > 0).all()
    assert_nothing_is_lost(testbed)


@pytest.mark.parametrize(("servers", "utilisation"), [(1, 0.5), (1, 0.8), (3, 0.8), (8, 0.8)])
def test_mm_c_waits_as_erlang_c_says_below_saturation(servers, utilisation):
    """Sakasegawa's formula is exact for one server; for several it is off by a few percent."""
    calibration = {"arrival_cv": 1.0, "service_cv": 1.0}
    topology = a_chain("O1", service_ms=100.0, cpu_cores=0.1, memory_mb=10.0)
    rate_per_s = 10 * servers * utilisation
    config = a_config(topology, rate_per_s, flavor=SMALL, calibration=calibration)
    testbed = started(config, instances=servers)
    wait_s = measured_at(testbed, 3600)["processing_duration"]["wait_ms"].mean() / 1000
    assert wait_s == pytest.approx(erlang_c_wait_s(servers, rate_per_s, 0.1), rel=0.08)


@pytest.mark.parametrize("utilisation", [0.5, 0.8])
def test_md_1_of_the_fluid_waits_as_pollaczek_and_khinchine_say(utilisation):
    config = a_config(a_chain("O1"), 10 * utilisation, calibration={"arrival_cv": 1.0})
    testbed = started(config)
    wait_s = measured_at(testbed, 3600)["processing_duration"]["wait_ms"].mean() / 1000
    assert wait_s == pytest.approx(0.1 * utilisation / (2 * (1 - utilisation)), rel=0.05)


def test_what_randomness_adds_is_bounded_by_what_can_build_up():
    calibration = {"arrival_cv": 1.0, "settle_s": 30.0}
    testbed = started(a_config(a_chain("O1"), 9.99999, calibration=calibration))
    wait_s = measured_at(testbed, 600)["processing_duration"]["wait_ms"].mean() / 1000
    # Reflected Brownian motion: sqrt(2 t sigma^2 / pi), with sigma^2 = 0.1 s per s.
    assert wait_s == pytest.approx((2 * 30 * 0.1 / np.pi) ** 0.5, rel=0.05)


@pytest.mark.parametrize(
    ("instances", "level"), [(1, 5.0), (1, 9.0), (3, 20.0), (3, 28.0), (8, 72.0)]
)
def test_both_testbeds_agree_under_constant_load(instances, level):
    means = {}
    for name in ("flow", "simulated"):
        calibration = {"service_cv": 0.5, "latency_ms": 5}
        topology = a_chain("O1", "O2", cpu_cores=0.2, memory_mb=10.0)
        config = a_config(topology, level, flavor=SMALL, calibration=calibration)
        testbed = started(config, instances=instances, testbed=name)
        testbed.advance_to(1800)
        observation, measured = (
            testbed.observe(),
            testbed.take_measurements()["processing_duration"],
        )
        for operator in ("O1", "O2"):
            mean_ms = measured["duration_ms"][rows_of(measured, operator)].mean()
            completed = observation.operators[operator].completed_items
            means.setdefault(operator, []).append((completed, mean_ms))
    for (flow_items, flow_ms), (exact_items, exact_ms) in means.values():
        assert flow_items == pytest.approx(exact_items, rel=0.002)
        assert flow_ms == pytest.approx(exact_ms, rel=0.15)


def test_both_testbeds_agree_on_manufacturing():
    instances = {"O1": 14, "O2": 3, "O3": 2, "O4": 2, "O5": 2, "O6": 2, "O7": 1, "O8": 1, "O9": 1}
    durations = {}
    for name in ("flow", "simulated"):
        calibration = {"service_ms": SERVICE_MS, "service_cv": 0.5, "latency_ms": 10}
        config = a_config(manufacturing(), 5.0, flavor=PAPER, calibration=calibration)
        testbed = TESTBEDS[name].build(config)
        hosts = [LeaseHost(PAPER.name, f"h{number}") for number in range(4)]
        places = [operator for operator, count in instances.items() for _ in range(count)]
        starts = [StartInstance(operator, f"h{i % 4}") for i, operator in enumerate(places)]
        testbed.deploy(decision(*hosts, *starts))
        measured = measured_at(testbed, 1200)["processing_duration"]
        durations[name] = {
            operator: measured["duration_ms"][rows_of(measured, operator)].mean()
            for operator in instances
        }
    for operator, exact_ms in durations["simulated"].items():
        assert durations["flow"][operator] == pytest.approx(exact_ms, rel=0.15), operator


TWIN = """
import hashlib
from tests.kernel.test_flow_queues import MOVES, a_plant, decision
testbed = a_plant()
testbed.advance_to(60)
testbed.apply(decision(*MOVES[60]))
testbed.advance_to(100)
for name, array in sorted(testbed.queues.arrays().items()):
    print(name, hashlib.sha256(array.round(9).tobytes()).hexdigest())
"""


def test_the_fluid_compiled_and_in_plain_python_agrees():
    compiled = printed(TWIN)
    assert compiled == printed(TWIN, NUMBA_DISABLE_JIT="1")
    assert "counts" in compiled


def test_a_step_divides_the_monitoring_period():
    config = a_config(a_topology(an_operator("O1", service_ms=9.0)), monitor_every_s=2.5)
    assert TESTBEDS["flow"].build(config).queues.step_us == 625_000
    config = a_config(a_topology(an_operator("O1", service_ms=9.0)), monitor_every_s=0.5)
    assert TESTBEDS["flow"].build(config).queues.step_us == 500_000


def test_a_host_that_is_not_shared_runs_what_it_promised_at_full_speed():
    topology = a_chain("O1", cpu_cores=0.5, memory_mb=10.0)
    served = {}
    for flavor in (SMALL, replace(SHARED, vcpus=4)):
        testbed = started(a_config(topology, 100.0, flavor=flavor), instances=8)
        served[flavor.name] = seen_at(testbed, 60).operators["O1"].completed_items
    # Eight instances of half a core fit four cores; of a core each they share them.
    assert served == {"small": 8 * 10 * 60, "shared": 4 * 10 * 60}
