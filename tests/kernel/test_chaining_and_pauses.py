"""Operators in another's instances, pauses while state moves, and instances that serve on."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.errors import SpecError
from include.model.topology import Topology
from include.testbeds.simulated import kernel
from include.testbeds.simulated.testbed import SimulatedTestbed
from include.testing.builders import SMALL, a_topology, an_operator, decision
from tests.builders import a_config, apply_at, fed_by, measured_at, resumed, rows_cut, seen_at
from tests.kernel.flows import QUIET
from tests.kernel.worlds import a_network, column, poisson_us, publish, waiting_items

IMAGES, QUERIES = 1, 0  # in flow order the chained operator comes first


def with_chained() -> Topology:
    """Images, and queries that their instances answer first."""
    images = an_operator("images", service_ms=1000.0)
    queries = an_operator("queries", service_ms=100.0, runs_in="images")
    return fed_by(a_topology(images, queries), {"camera": "images", "people": "queries"})


def chained(images_us: list[int], queries_us: list[int], **changes):
    """One server for both; the services take exactly 1 s and 0.1 s."""
    network = a_network(topology=with_chained(), servers=0, **{"service_cv": 0.0} | changes)
    network.add_server(IMAGES, instance=1, host=1, ready_us=0)
    publish(network, np.array(images_us), np.array(queries_us))
    return network


def recorded_values(records: np.ndarray, operator: int, index: int) -> list[int]:
    return column(records[records[:, kernel.R_OPERATOR] == operator], index).tolist()


def test_operators_that_run_in_another_have_no_instances_and_are_checked():
    topology = with_chained()
    assert topology.operator_names == ("images",)
    assert topology.flow_order == ("queries", "images")
    assert list(topology.problems()) == []
    nowhere = a_topology(an_operator("O1", runs_in="O7"), an_operator("O2"))
    text = "\n".join(nowhere.problems())
    assert "O7 has no instances that it could run in" in text
    assert "runs in another, so nothing may receive from it" in text


def test_a_chained_operator_goes_first_but_interrupts_nothing():
    network = chained([0, 1, 2], [300_000, 400_000])
    network.advance(10_000_000)
    records = network.take_records()
    # The first image ends at 1.0 s, then both queries, then the images that waited longer.
    assert recorded_values(records, QUERIES, kernel.R_DONE_US) == [1_100_000, 1_200_000]
    assert recorded_values(records, IMAGES, kernel.R_DONE_US) == [1_000_000, 2_200_000, 3_200_000]
    assert recorded_values(records, QUERIES, kernel.R_INSTANCE) == [1, 1]


def test_a_chained_item_that_comes_later_does_not_hold_an_item_back():
    network = chained([0], [500])
    network.advance(10_000_000)
    records = network.take_records()
    assert recorded_values(records, IMAGES, kernel.R_WAIT_US) == [0]
    assert recorded_values(records, QUERIES, kernel.R_WAIT_US) == [999_500]


def test_an_item_of_a_chained_operator_that_crashed_is_queued_again_with_its_number():
    network = chained([], [0, 50_000])
    network.advance(60_000)
    assert network.crash_server(IMAGES, 1, 60_000)
    assert waiting_items(network, 60_000)[QUERIES] == 2
    network.add_server(IMAGES, instance=2, host=1, ready_us=100_000)
    network.advance(10_000_000)
    records = network.take_records()
    assert recorded_values(records, QUERIES, kernel.R_DONE_US) == [200_000, 300_000]
    assert recorded_values(records, QUERIES, kernel.R_NUMBER) == [0, 1]


def test_nothing_starts_in_a_pause_and_what_has_started_goes_on():
    network = chained([0, 1], [1_200_000])
    network.pause(IMAGES, 500_000, 3_000_000)
    network.advance(10_000_000)
    records = network.take_records()
    assert recorded_values(records, IMAGES, kernel.R_DONE_US) == [1_000_000, 4_100_000]
    assert recorded_values(records, QUERIES, kernel.R_DONE_US) == [3_100_000]


def test_the_paused_share_of_a_period_counts_overlaps_once():
    network = chained([], [])
    network.pause(IMAGES, 1_000_000, 1_300_000)
    network.pause(IMAGES, 1_200_000, 1_400_000)
    network.pause(IMAGES, 1_900_000, 2_500_000)
    assert network.paused_share(2_000_000, 1_000_000).tolist() == [0.0, 0.5]
    assert network.paused_share(2_500_000, 500_000).tolist() == [0.0, 1.0]


def test_a_pause_to_come_leaves_those_before_it():
    network = chained([], [])
    network.pause(IMAGES, 1_000_000, 1_300_000)
    network.pause(IMAGES, 60_000_000, 63_000_000)
    assert network.paused_share(2_000_000, 1_000_000).tolist() == [0.0, 0.3]


def test_a_transfer_counts_for_the_age_and_holds_no_core():
    plain = a_network(poisson_us(0.5, 4000))
    sent = a_network(poisson_us(0.5, 4000), transfer_ms=7000)
    for network in (plain, sent):
        network.advance(10**13)
    before, after = plain.take_records(), sent.take_records()
    assert (before[:, kernel.R_DONE_US] == after[:, kernel.R_DONE_US]).all()
    transfer_ms = (after[:, kernel.R_AGE_US] - after[:, kernel.R_DURATION_US]) / 1000
    assert (before[:, kernel.R_AGE_US] == before[:, kernel.R_DURATION_US]).all()
    assert transfer_ms.mean() == pytest.approx(7000, rel=0.05)
    assert (transfer_ms > 7000).mean() == pytest.approx(np.exp(-1), abs=0.03)


def a_testbed(**calibration) -> SimulatedTestbed:
    topology = a_topology(an_operator("O1", service_ms=400.0))
    settled = QUIET | {"instance_start_s": [10, 10], "drain_s": 2}
    config = a_config(
        topology, duration_s=600.0, seed=1, monitor_every_s=0.5, calibration=settled | calibration
    )
    testbed = SimulatedTestbed(config)
    testbed.deploy(decision(LeaseHost(SMALL.name, "a"), StartInstance("O1", "a")))
    return testbed


def starts_s(testbed: SimulatedTestbed) -> list[float]:
    return starts_s_of(testbed.take_measurements())


def starts_s_of(taken: dict[str, Any]) -> list[float]:
    return [round(t - 0.4, 6) for t in taken["processing_duration"]["time_s"]]


@pytest.mark.parametrize("of_operator", [{}, {"operator_pause_s": {"O1": 3.0}}])
@pytest.mark.parametrize(
    ("start_s", "begin_s"), [(1.5, [11.5, 11.5, 11.9]), (0.0, [10.0, 10.0, 10.4, 10.4])]
)
def test_state_moves_before_an_instance_is_ready_and_after_one_is_stopped(
    of_operator, start_s, begin_s
):
    usual_s = 60.0 if of_operator else 3.0
    testbed = a_testbed(pause_on_start_s=usual_s, pause_on_stop_s=usual_s, **of_operator)
    apply_at(testbed, start_s, StartInstance("O1", "host-1"))  # ready 10 s later
    apply_at(testbed, 20.5, StopInstance("O1-2"))
    testbed.advance_to(30.0)
    started_s = starts_s(testbed)
    # An item a second; two instances catch up with what has waited for 3 s at once.
    before = ceil(start_s + 7)
    assert started_s[:before] == [float(i) for i in range(before)]
    assert [t for t in started_s if before <= t < start_s + 10.5] == begin_s
    assert [t for t in started_s if 20.5 <= t < 24.5] == [23.5, 23.9, 24.3]


def test_settings_of_unknown_operators_are_refused_at_once():
    with pytest.raises(SpecError) as refused:
        a_testbed(operator_pause_s={"O9": 3.0}, buffer_items={"O8": 2}, held_mb={"O7": (1, 2)})
    for setting, name in (("operator_pause_s", "O9"), ("buffer_items", "O8"), ("held_mb", "O7")):
        assert f"{setting}: unknown operator '{name}'" in str(refused.value)
    assert "buffer_items must have all operators or none; add O1" in str(refused.value)


def test_pauses_of_operators_are_observed_once_they_are_over():
    """One for what comes and goes together: from 1.5 s on, and from 9 to 11.5 s."""
    testbed = a_testbed(pause_on_start_s=2.5, pause_on_stop_s=3.0)
    apply_at(testbed, 1.5, StartInstance("O1", "host-1"), StartInstance("O1", "host-1"))
    seen = {}
    for t_s in (11.0, 11.5, 21.0, 23.0, 24.5):
        if t_s == 21.0:
            apply_at(testbed, 20.5, StopInstance("O1-2"))
            apply_at(testbed, t_s, StopInstance("O1-3"))
        testbed.advance_to(t_s)
        observation = testbed.look("another")  # as often as anyone likes
        seen[t_s] = observation.operator_pauses.get("O1")
        testbed.take_measurements()
        testbed = resumed(testbed)
    assert seen == {
        11.0: None, 11.5: (1, 2.5), 21.0: (1, 2.5), 23.0: (1, 2.5), 24.5: (2, 6.0)
    }  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(
    changes_s=st.lists(st.integers(1, 60), min_size=1, max_size=8, unique=True),
    cuts_s=st.lists(st.integers(1, 99), max_size=4, unique=True),
)
def test_pauses_are_measured_once_and_as_long_as_they_are_observed(changes_s, cuts_s):
    """Every second change stops what the one before it has started, or would have."""
    actions = [
        [StopInstance(f"O1-{2 + i // 2}") if i % 2 else StartInstance("O1", "host-1")]
        for i in range(len(changes_s))
    ]
    moves = dict(zip(sorted(changes_s), actions, strict=True))
    testbed = a_testbed(pause_on_start_s=2.5, pause_on_stop_s=3.0)
    rows, testbed = rows_cut(testbed, moves, cuts_s, 100)
    pauses = rows["pause"].to_pylist() if "pause" in rows else []
    assert {pause["operator"] for pause in pauses} <= {"O1"}
    paused = {
        tenth
        for pause in pauses
        for tenth in range(round(pause["from_s"] * 10), round(pause["until_s"] * 10))
    }
    assert len(paused) / 10 == testbed.look().operator_pauses.get("O1", (0, 0.0))[1]


@pytest.mark.parametrize("lost", [False, True])
def test_nobody_pauses_for_an_instance_that_ended_before_it_was_ready(lost):
    testbed = a_testbed(pause_on_start_s=2.5, pause_on_stop_s=3.0)
    apply_at(testbed, 1.5, StartInstance("O1", "host-1"))  # ready at 11.5
    testbed.advance_to(5)
    if lost:
        testbed.fail(testbed.fleet.instances[2])
    else:
        testbed.apply(decision(StopInstance("O1-2")))
    taken = measured_at(testbed, 20.0)
    assert starts_s_of(taken) == [float(i) for i in range(20)]
    assert "pause" not in taken


def cpu_shares(testbed: SimulatedTestbed, until_s: float) -> list[float]:
    shares, t_s = [], testbed.now_s
    while t_s < until_s:
        t_s += 0.5
        testbed.advance_to(t_s)
        shares += [
            instance.cpu_share
            for instance in testbed.observe().instances.values()
            if instance.ready
        ]
    return shares


def test_a_busy_instance_may_show_less_than_a_whole_core():
    assert cpu_shares(a_testbed(), 2.0) == [0.8, 0.0, 0.8, 0.0]
    assert cpu_shares(a_testbed(cpu_when_busy=0.5), 2.0) == [0.4, 0.0, 0.4, 0.0]


def test_moving_state_takes_cpu():
    testbed = a_testbed(pause_on_start_s=3.0, cpu_in_pause=0.6)
    testbed.apply(decision())
    apply_at(testbed, 0.5, StartInstance("O1", "host-1"))  # pauses from 7.5 to 10.5
    testbed.advance_to(7.5)
    assert cpu_shares(testbed, 10.0) == [0.6] * 5


def test_drift_is_slow_relative_and_the_same_for_all_cuts():
    testbed, other = (a_testbed(cpu_drift=0.2, cpu_drift_s=20.0) for _ in range(2))
    drift = np.array([testbed.monitor._drift(t) for t in np.arange(0, 20_000, 0.5)])
    assert abs(drift.mean()) < 0.03
    assert 0.1 < drift.std() < 0.3
    assert np.corrcoef(drift[:-1], drift[1:])[0, 1] > 0.9
    assert other.monitor._drift(123.5) == drift[247]


def test_state_is_shared_by_the_instances_that_hold_it():
    testbed = a_testbed(held_mb={"O1": [100, 600]})
    assert [instance.memory_share for instance in seen_at(testbed, 1.0).instances.values()] == [0.7]
    testbed.apply(decision(StartInstance("O1", "host-1")))
    assert [instance.memory_share for instance in seen_at(testbed, 15.0).instances.values()] == [
        0.4,
        0.4,
    ]
    bare = a_testbed()
    bare.advance_to(1.0)
    assert [instance.memory_share for instance in bare.observe().instances.values()] == [None]


ALWAYS_AT_WORK = {
    "latency_ms": 0, "service_cv": 0, "sample_every_items": 1, "service_ms": {"O1": 900},
}  # fmt: skip


def a_world(level: float = 2.0, instances: int = 2) -> SimulatedTestbed:
    """Two instances of O1, of 0.9 s an item, each with its own host; ``level`` items a second."""
    config = a_config(a_topology("O1"), level, duration_s=600.0, seed=1, calibration=ALWAYS_AT_WORK)
    testbed = SimulatedTestbed(config)
    hosts = [LeaseHost(SMALL.name, f"new-{n}") for n in range(instances)]
    starts = [StartInstance("O1", f"new-{n}") for n in range(instances)]
    testbed.deploy(decision(*hosts, *starts))
    return testbed


def completed(testbed: SimulatedTestbed, until_s: float) -> int:
    """Items that were done by then."""
    return seen_at(testbed, until_s).operators["O1"].completed_items


@pytest.mark.parametrize(("serves_s", "items"), [(60.0, 120), (0.0, 67)])
def test_a_stopped_instance_serves_on_as_long_as_it_was_told(serves_s: float, items: int) -> None:
    testbed = a_world()
    completed(testbed, 60)
    testbed.apply(decision(StopInstance("O1-2", serves_s=serves_s)))
    assert completed(testbed, 120) == pytest.approx(items, abs=1)


def test_it_is_killed_then_and_its_item_goes_back_to_the_queue() -> None:
    testbed = a_world(level=2.5)  # more than both can do, so both are always at work
    completed(testbed, 60)
    testbed.apply(decision(StopInstance("O1-2", serves_s=30.0), ReleaseHost("host-2")))
    assert seen_at(testbed, 89.9).instances["O1-2"].stopping
    assert "host-2" in testbed.observe().hosts
    observation = seen_at(testbed, 90.0)
    assert "O1-2" not in observation.instances
    assert "host-2" not in observation.hosts
    assert testbed.leases()["ended_s"] == [90.0, 90.0]  # the other is leased until now
    state = testbed.network.state
    head, tail, *_ = state.edges[0]
    done, numbered = int(state.nodes[0, 3]), int(state.nodes[0, 0])
    in_work, orphans = 1, int(state.nodes[0, 5])
    assert orphans == 1
    assert done + in_work + orphans == numbered
    assert done + in_work + int(tail - head) == 225


def test_a_moved_instance_serves_until_its_copy_is_ready() -> None:
    testbed = a_world(level=1.0, instances=2)
    testbed.advance_to(60)
    stop = decision(
        MigrateInstance("O1-1", "host-2", serves_s=60.0), StopInstance("O1-2", serves_s=60.0)
    )
    testbed.apply(stop)
    looks = [seen_at(testbed, 60 + 15 * turn) for turn in range(1, 9)]
    waits = [look.operators["O1"].waiting_items for look in looks]
    assert max(waits) <= 2


def test_a_broker_counts_the_longest_queue_with_what_is_in_work() -> None:
    topology = fed_by(a_topology(an_operator("O1", service_ms=1000.0)), {"S1": "O1", "S2": "O1"})
    network = a_network(topology=topology, servers=1, service_cv=0.0)
    publish(network, np.array([0, 1, 2, 3]), np.array([10, 11]))
    network.advance(500_000)
    per_operator, _, _ = network.read(500_000, 500_000)
    assert per_operator[0, 0] == 5  # waiting, of both queues
    assert per_operator[0, 3] == 4  # of the first: three, one in work
    network.advance(4_500_000)
    assert network.read(4_500_000, 1)[0][0, 3] == 2
    network.advance(9_000_000)
    assert network.read(9_000_000, 1)[0][0, 3] == 0
