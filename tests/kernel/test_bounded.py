"""Bounded buffers, against closed formulas and arithmetic, and items that a broker binds early."""

from __future__ import annotations

import numpy as np
import pytest

from include.model.errors import SpecError
from include.model.topology import Keyed
from include.testbeds.simulated import kernel
from include.testbeds.virtual.key_groups import loads_of_instances, sizes_of_keys
from include.testing.builders import a_topology, an_operator
from tests.kernel.worlds import a_network, column, poisson_us, publish, waiting_items
from tests.problems import problems_told

S = 1_000_000
BUFFERS = 4
"""Between one that sends and one that receives."""


def a_chain(*service_ms: float, room: int = 1, **changes):
    """Operators O1, O2, ... behind one source, with room for so many items where one instance sends
    to one."""
    operators = [an_operator(f"O{n}", service_ms=ms) for n, ms in enumerate(service_ms, start=1)]
    buffers = dict.fromkeys([op.name for op in operators], room / BUFFERS)
    return a_network(topology=a_topology(*operators), buffer_items=buffers, **changes)


def times_s(network, operator: int = 0) -> dict[int, tuple[float, float]]:
    """By item number at an operator: how long it waited since it was sent, and when it was done."""
    rows = network.take_records()
    rows = rows[rows[:, kernel.R_OPERATOR] == operator]
    return {
        int(row[kernel.R_NUMBER]): (row[kernel.R_WAIT_US] / S, row[kernel.R_DONE_US] / S)
        for row in rows
    }


@pytest.mark.parametrize(("rate_per_s", "room"), [(0.8, 2), (1.5, 4)])
def test_the_share_of_time_at_the_source_is_that_of_m_m_1(rate_per_s: float, room: int) -> None:
    """M/M/1 whose buffer is bounded and whose source waits: items are lost nowhere, so all of them
    are done when those of an unbounded M/M/1 are, and only where they wait differs."""
    arrivals_us = poisson_us(rate_per_s, 20_000)
    free, bounded = (
        a_network(arrivals_us, service_cv=1.0, **buffers)
        for buffers in ({}, {"buffer_items": {"O1": room / BUFFERS}})
    )
    for network in (free, bounded):
        network.advance(10**12)
    expected, found = (network.take_records() for network in (free, bounded))
    assert np.array_equal(found[:, kernel.R_DONE_US], expected[:, kernel.R_DONE_US])
    # In the buffer nobody waits for more than the room in it and the item in service.
    assert found[:, kernel.R_WAIT_US].max() < expected[:, kernel.R_WAIT_US].max()
    assert np.array_equal(
        (found[:, kernel.R_AGE_US]), expected[:, kernel.R_AGE_US]
    )  # ages are since the source published them, wherever they waited


@pytest.mark.parametrize("room", [1, 3])
def test_two_in_line_do_as_much_as_blocking_after_service_allows(room: int) -> None:
    """A source that always has something, two exponential servers of one mean and room for ``room``
    items between them: (room + 2) / (room + 3) items per mean service time, the first one being
    blocked while it holds an item that the second has no room for (Hunt, 1956)."""
    network = a_chain(1000.0, 1000.0, room=room, service_cv=1.0, duration_s=20_000)
    publish(network, np.arange(20_000) * 1000)
    network.advance(16_000 * S)
    done = network.state.nodes[1, kernel.COMPLETED]
    assert done / 16_000 == pytest.approx((room + 2) / (room + 3), rel=0.03)


def test_what_is_slow_holds_up_what_is_before_it() -> None:
    """D/D/1 twice: 0.1 s, then 1 s with room for two. O1 does the first four at once, for one of
    them is in service at O2, two are before it and one finds no room; then one a second."""
    network = a_chain(100.0, 1000.0, room=2, service_cv=0.0, duration_s=60)
    publish(network, np.zeros(30, dtype=np.int64))
    network.advance(20 * S)
    done_s = [done for _, (_, done) in sorted(times_s(network).items())]
    assert done_s[:4] == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=1e-3)
    # The next begins once what it has sent has room: when O2 begins another, at 1.1 s, 2.1 s, ...
    assert done_s[4:7] == pytest.approx([1.2, 2.2, 3.2], abs=1e-3)
    # O1 has two before it, O2 has two, one waits between them; the rest is at the source.
    assert network.state.holding[:, 0, kernel.HELD].tolist() == [2, 2]
    assert waiting_items(network, 20 * S).sum() == 30 - network.state.nodes[0, kernel.NUMBERED] + 3


def test_items_are_sent_once_there_is_room() -> None:
    """Four at once to one instance of a second with room for one: those behind wait at the source,
    so each is a second in the buffer, and is as old as it is since the source had it."""
    network = a_network(
        np.array([0, 1, 2, 3]), service_cv=0.0, buffer_items={"O1": 1 / BUFFERS}, duration_s=60
    )
    network.advance(20 * S)
    rows = network.take_records()
    assert (rows[:, kernel.R_WAIT_US] / S).tolist() == pytest.approx([0, 1, 1, 1], abs=1e-3)
    assert (rows[:, kernel.R_AGE_US] / S).tolist() == pytest.approx([1, 2, 3, 4], abs=1e-3)


def test_what_was_in_buffers_stays_together_and_comes_first() -> None:
    """Of three full instances the second leaves: what it held goes to the second that is left, what
    the third held to the first, which has more then than there is room for."""
    network = a_network(
        np.arange(15),
        servers=3,
        service_cv=0.0,
        buffer_items={"O1": 4 / (3 + 1 / 3)},
        duration_s=60,
    )
    network.advance(S // 2)
    assert network.state.holding[0, :3, kernel.HELD].tolist() == [4, 4, 4]
    network.start_again([], [2], S // 2, 3 * S, np.zeros(1, dtype=np.int64))
    assert network.state.holding[0, :3, kernel.HELD].tolist() == [8, 0, 4]
    assert network.restoring
    network.advance(7 * S)  # since 3 s, so the shorter of the two is done
    assert network.state.restored[0, :3].tolist() == [4, 0, 0]
    network.advance(11 * S)
    assert not network.restoring
    done_s = sorted(done for _, done in times_s(network).values())
    # Those in service end at 1 s; then both do one a second, and the first is done at 11 s.
    assert done_s == pytest.approx(
        [1, 1, 1, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11][: len(done_s)], abs=1e-3
    )


def test_an_operator_is_as_slow_as_the_instance_with_the_most_keys() -> None:
    """Items of a skewed operator wait for its fullest instance, whatever the others could do."""
    keyed = Keyed(keys=50, exponent=1.0)
    operator = an_operator("O1", service_ms=100.0, stateful=True, keyed=keyed)
    network = a_network(
        topology=a_topology(operator),
        servers=4,
        service_cv=0.0,
        buffer_items={"O1": 5},
        level=1000.0,
        duration_s=200,
    )
    network.advance(200 * S)
    fullest = loads_of_instances(sizes_of_keys(keyed), 4).max()
    assert fullest > 1.2
    per_s = network.state.nodes[0, kernel.COMPLETED] / 200
    assert per_s == pytest.approx(4 * 10 / fullest, rel=0.02)


def test_all_operators_have_a_bound_or_none() -> None:
    topology = a_topology(an_operator("O1"), an_operator("O2"))
    changes = {"prefetch": 2, "buffer_items": {"O1": 5}, "service_ms": {"O1": 1.0, "O2": 1.0}}
    told = "\n".join(problems_told(a_network, topology=topology, **changes))
    assert "add O2" in told
    assert "not both" in told


@pytest.mark.parametrize(
    ("senders", "receivers", "buffers"), [(1, 1, 4), (4, 1, 13), (1, 2, 3.5), (1, 4, 3.25)]
)
def test_room_is_that_of_the_buffers_between_senders_and_receivers(
    senders: int, receivers: int, buffers: float
) -> None:
    """On Flink one instance of 92 ms had up to 198 items before it from 15 instances, 251 from 19,
    and one fed by a source up to 20: five in a buffer. Here there are eight. One more of each
    sender finds no room (blocking after service)."""
    network = a_chain(5.0, 1000.0, room=8 * BUFFERS, service_cv=0.0, duration_s=60)
    for operator, count in enumerate((senders, receivers)):
        for instance in range(2, count + 1):
            network.add_server(operator, instance, 0, 0)
    publish(network, np.zeros(400, dtype=np.int64))
    network.advance(9 * S // 10)
    held = network.state.holding[1, :receivers, kernel.HELD]
    assert held.tolist() == [8 * buffers] * receivers
    assert network.state.nodes[0, kernel.COMPLETED] > (8 * buffers + 1) * receivers


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
    per_operator, *_ = network.read(S // 2, S)
    assert per_operator[0, 6] == S // 2 - 200, "the third is held, and waits longest"
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


def test_nothing_is_held_of_an_operator_without_instances_of_its_own() -> None:
    topology = a_topology(an_operator("O1"), an_operator("O2", runs_in="O1"))
    with pytest.raises(SpecError, match="prefetch must be 0: O2 has no instances of its own"):
        a_network(topology=topology, prefetch=5, service_ms={"O1": 1.0, "O2": 1.0})
