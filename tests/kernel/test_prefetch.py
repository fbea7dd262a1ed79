"""Items that a broker binds to an instance before it is done with the one before."""

from __future__ import annotations

import numpy as np
import pytest

from include.model.errors import SpecError
from include.testbeds.simulated import kernel
from include.testing.builders import a_topology, an_operator
from tests.kernel.worlds import a_network, column, poisson_us, waiting_items

S = 1_000_000


def done_s(network, until_s: float) -> list[float]:
    """When every item was done, in order of their numbers."""
    network.advance(round(until_s * S))
    return (column(network.take_records(), kernel.R_DONE_US) / S).tolist()


def test_items_are_dealt_in_turn_and_wait_behind_each_other() -> None:
    """Two instances, of which the second works half as fast: the fourth item waits for it."""
    arrivals_us = np.array([0, 100, 200, 300])
    shared, bound = (
        a_network(arrivals_us, servers=2, service_cv=0.0, prefetch=n, duration_s=60) for n in (0, 2)
    )
    for network in (shared, bound):
        network.state.servers[0, 1, kernel.SPEED_PERMILLE] = 250
    assert sorted(done_s(shared, 20)) == pytest.approx([1, 2, 3, 4], abs=1e-3)
    # 1 and 3 are dealt to the first, 2 and 4 to the second, which needs 4 s for each.
    assert sorted(done_s(bound, 20)) == pytest.approx([1, 2, 4, 8], abs=1e-3)


def test_no_more_are_dealt_than_an_instance_may_have() -> None:
    """Of six items two instances may have two each; the rest go to whoever is done first."""
    network = a_network(np.arange(6) * 100, servers=2, service_cv=0.0, prefetch=2, duration_s=60)
    network.state.servers[0, 1, kernel.SPEED_PERMILLE] = 250
    network.advance(S // 2)
    assert network.state.holding[0, :2, kernel.HELD].tolist() == [1, 1]
    assert waiting_items(network, S // 2).tolist() == [4]
    # Those of the first end at 1, 2, 3 and 4 s, those of the second at 4 and 8 s.
    assert sorted(done_s(network, 20)) == pytest.approx([1, 2, 3, 4, 4, 8], abs=1e-3)


def test_with_one_item_each_nothing_is_bound_ahead() -> None:
    """An instance that may have one item only: the same items end when they end without."""
    arrivals_us = poisson_us(2.5, 400)
    shared, bound = (
        a_network(arrivals_us, servers=3, service_cv=0.0, prefetch=n, duration_s=600)
        for n in (0, 1)
    )
    assert sorted(done_s(bound, 600)) == sorted(done_s(shared, 600))


@pytest.mark.parametrize("lost", [True, False])
def test_what_a_lost_or_closed_instance_holds_goes_to_others(lost: bool) -> None:
    network = a_network(np.arange(4) * 100, servers=2, service_cv=0.0, prefetch=2, duration_s=60)
    network.advance(S // 2)
    (network.crash_server if lost else network.close_server)(0, 2, S // 2)
    # The first does its own two, then what came back, and what was in service if it is lost.
    ends_s = [1, 2, 3, 4] if lost else [1, 1, 2, 3]
    assert sorted(done_s(network, 20)) == pytest.approx(ends_s, abs=1e-3)


def test_binding_costs_waiting_where_instances_are_plenty() -> None:
    """At 60 % load items seldom wait for the first free of ten; bound ones wait for their own."""
    arrivals_us = poisson_us(6.0, 5000)
    waits_s = {}
    for prefetch in (0, 5):
        network = a_network(
            arrivals_us, servers=10, service_cv=0.5, prefetch=prefetch, duration_s=1200
        )
        network.advance(1200 * S)
        waits_s[prefetch] = network.take_records()[:, kernel.R_WAIT_US].mean() / S
    assert waits_s[5] > 5 * waits_s[0]


def test_nothing_is_held_of_an_operator_without_instances_of_its_own() -> None:
    topology = a_topology(an_operator("O1"), an_operator("O2", runs_in="O1"))
    with pytest.raises(SpecError, match="prefetch must be 0: O2 has no instances of its own"):
        a_network(topology=topology, prefetch=5, service_ms={"O1": 1.0, "O2": 1.0})
