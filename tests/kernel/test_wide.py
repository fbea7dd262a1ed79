"""Many operators: rows stay in order, memory with those that need it, nothing is done twice."""

from __future__ import annotations

import numpy as np
import pytest

from include.model.decision import StopInstance
from include.testbeds.simulated import kernel, rings
from include.testbeds.virtual.fleet import VirtualFleet, VirtualHost, VirtualInstance
from include.testing.builders import a_topology, an_operator, decision
from include.workloads.topologies import load_topology
from tests.builders import a_config, started
from tests.kernel.worlds import a_network


def a_wide_one(operators: int, **changes):
    topology = load_topology(f"layered_{operators}")
    return a_network(topology=topology, **{"level": 8.0, "servers": 6, **changes})


@pytest.mark.parametrize("operators", [128, 300])
def test_records_are_in_the_order_of_operators_and_times(operators: int) -> None:
    network = a_wide_one(operators)
    network.advance(20_000_000)
    records = network.take_records()
    order = np.lexsort((records[:, kernel.R_DONE_US], records[:, kernel.R_OPERATOR]))
    by_operator_and_time = records[order][:, [kernel.R_OPERATOR, kernel.R_DONE_US]]
    assert np.array_equal(records[:, [kernel.R_OPERATOR, kernel.R_DONE_US]], by_operator_and_time)
    assert len(np.unique(records[:, kernel.R_OPERATOR])) > 0.9 * operators


def test_an_edge_uses_its_rows_again() -> None:
    network = a_wide_one(10, servers=60)
    edges = network.state.edges
    for second in range(1, 601):
        network.advance(second * 1_000_000)
        gone = edges[:, rings.HEAD] - edges[:, rings.FIRST]
        assert (gone < np.maximum(edges[:, rings.TAIL] - edges[:, rings.HEAD], 1)).all()
    assert int(network.state.nodes[:, kernel.COMPLETED].max()) > 10_000
    assert (edges[:, rings.END] - edges[:, rings.FIRST] == 256).all()


def test_one_long_queue_does_not_widen_the_others() -> None:
    network = a_wide_one(100, servers=60)
    bottleneck = network.names.index("o5")
    for slot in range(59):
        network.close_server(bottleneck, int(network.state.servers[bottleneck, slot, 0]), 0)
    for minute in range(1, 31):
        network.advance(minute * 60_000_000)
    widths = np.diff(network.state.edges[:, rings.FIRST :]).ravel()
    assert widths.max() >= 32_768
    assert len(network.state.items) <= 4 * widths.max() + 4 * 2048 * len(widths)
    kept = network.state.edges[:, rings.TAIL] - network.state.edges[:, rings.HEAD]
    stored = network.arrays()
    assert stored["items_per_edge"].tolist() == kept.tolist()
    again = a_wide_one(100, servers=60)
    again.load(stored)
    for each in (network, again):
        each.take_records()
        each.advance(31 * 60_000_000)
    assert np.array_equal(network.take_records(), again.take_records())
    for name, array in network.arrays().items():
        assert np.array_equal(array, again.arrays()[name]), name


def test_hosts_and_instances_are_found_by_their_names_and_by_no_others() -> None:
    fleet = VirtualFleet()
    fleet.hosts[7] = VirtualHost(
        number=7, flavor="large", ordered_us=0, paid_until_us=0, up_us=0, ended_us=None
    )
    fleet.instances[12] = VirtualInstance(
        number=12, operator="a-b", host=7, row=0, started_us=0, ready_us=0
    )
    assert fleet.host("host-7") is fleet.hosts[7]
    assert fleet.instance("a-b-12") is fleet.instances[12]
    for name in ("host-8", "host-07", "new-7", "7", "host", "", "host-\u0667", "host-\u00b2"):
        assert fleet.host(name) is None, name
    for name in ("a-b-13", "a-12", "b-12", "a-b-", "a-b"):
        assert fleet.instance(name) is None, name
    fleet.hosts[7].ended_us = fleet.instances[12].stopped_us = 1
    assert fleet.host("host-7") is None
    assert fleet.instance("a-b-12") is None


class Looked(dict[int, VirtualInstance]):
    """Counts how often somebody goes through all of it."""

    times = 0

    def values(self):
        self.times += 1
        return super().values()


def test_to_stop_many_takes_no_more_looks_at_all_instances_than_to_stop_one() -> None:
    def looks(stopped: int) -> int:
        config = a_config(a_topology(an_operator("O1", service_ms=100.0)))
        testbed = started(config, "simulated", hosts=4, instances=9)
        testbed.advance_to(300)
        testbed.fleet.instances = looked = Looked(testbed.fleet.instances)
        stops = [StopInstance(f"O1-{number}") for number in range(1, 1 + stopped)]
        assert all(outcome.accepted for outcome in testbed.apply(decision(*stops)))
        return looked.times

    assert looks(8) == looks(1)
