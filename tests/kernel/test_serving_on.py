"""Instances that work on after they were stopped, and queues as a broker counts them."""

from __future__ import annotations

import numpy as np
import pytest

from include.model.decision import LeaseHost, MigrateInstance, ReleaseHost, StartInstance
from include.model.decision import StopInstance as Stop
from include.testbeds.simulated.testbed import SimulatedTestbed
from include.testing.builders import SMALL, a_topology, an_operator, decision
from tests.builders import a_config, apply_at, fed_by, measured_at, resumed, seen_at
from tests.kernel.worlds import a_network, publish

CALIBRATION = {"latency_ms": 0, "service_cv": 0, "sample_every_items": 1, "service_ms": {"O1": 900}}


def a_world(level: float = 2.0, instances: int = 2) -> SimulatedTestbed:
    """Two instances of O1, of 0.9 s an item, each with its own host; ``level`` items a second."""
    config = a_config(a_topology("O1"), level, duration_s=600.0, seed=1, calibration=CALIBRATION)
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
    testbed.apply(decision(Stop("O1-2", serves_s=serves_s)))
    assert completed(testbed, 120) == pytest.approx(items, abs=1)


def test_it_is_killed_then_and_its_item_goes_back_to_the_queue() -> None:
    testbed = a_world(level=2.5)  # more than both can do, so both are always at work
    completed(testbed, 60)
    testbed.apply(decision(Stop("O1-2", serves_s=30.0), ReleaseHost("host-2")))
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
    stop = decision(MigrateInstance("O1-1", "host-2", serves_s=60.0), Stop("O1-2", serves_s=60.0))
    testbed.apply(stop)
    looks = [seen_at(testbed, 60 + 15 * turn) for turn in range(1, 9)]
    waits = [look.operators["O1"].waiting_items for look in looks]
    assert max(waits) <= 2


def test_a_window_may_end_while_an_instance_serves_on() -> None:
    def left(cut: bool) -> dict[str, np.ndarray]:
        testbed = a_world()
        apply_at(testbed, 60, Stop("O1-2", serves_s=60.0))
        measured_at(testbed, 75)
        if cut:
            testbed = resumed(testbed)
        measured_at(testbed, 180)
        return testbed.snapshot()

    np.testing.assert_equal(left(cut=True), left(cut=False))


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
