"""Order, conservation and cuts: what must hold for every network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from include.testbeds.simulated import kernel
from include.testbeds.simulated.network import QueueingNetwork
from include.testing.builders import a_topology, an_operator
from tests.builders import manufacturing
from tests.kernel.test_bounded import a_chain
from tests.kernel.test_chaining_and_pauses import IMAGES, chained
from tests.kernel.worlds import a_network, column, poisson_us, printed, records_cut, waiting_items

SERVICE_MS = {"O1": 1246, "O2": 75, "O3": 111, "O4": 111, "O5": 111, "O6": 26, "O7": 9, "O8": 6}


def a_plant(**changes):
    return a_network(
        topology=manufacturing(),
        duration_s=600,
        level=2.0,
        service_ms={**SERVICE_MS, "O9": 7},
        latency_ms=13,
        stalls_per_hour=20,
        **{"servers": 4, **changes},
    )


def test_items_take_the_earliest_server_and_the_lower_slot_on_a_tie():
    network = a_network(np.array([0, 1, 2, 3]), servers=3, service_cv=0.0)
    network.advance(10_000_000)
    records = network.take_records()
    assert column(records, kernel.R_INSTANCE).tolist() == [1, 2, 3, 1]
    assert column(records, kernel.R_WAIT_US).tolist() == [0, 0, 0, 999_997]


def test_a_server_takes_nothing_before_it_is_ready_and_nothing_once_closed():
    network = a_network(np.array([0, 100]), servers=0, service_cv=0.0)
    network.add_server(0, instance=1, host=1, ready_us=5_000_000)
    network.advance(5_500_000)
    network.close_server(0, instance=1, now_us=0)
    network.advance(60_000_000)
    records = network.take_records()
    assert records[:, kernel.R_WAIT_US].tolist() == [5_000_000]  # it finishes the item it has
    assert waiting_items(network, 60_000_000).tolist() == [1]


def test_a_stall_delays_starts_only():
    network = a_network(np.array([0, 1_000_000, 2_000_000, 9_000_000]), servers=4, service_cv=0.0)
    network.state.stalls_us[0, 0] = 900_000, 5_000_000
    network.advance(60_000_000)
    wait_us = column(network.take_records(), kernel.R_WAIT_US)
    assert wait_us.tolist() == [0, 4_000_000, 3_000_000, 0]


def test_a_crashed_item_goes_back_to_the_head_and_keeps_its_number():
    network = a_network(np.array([0, 10, 20]), servers=2, service_cv=0.0)
    network.advance(500_000)
    assert network.crash_server(0, instance=1, now_us=500_000) is True
    assert waiting_items(network, 500_000).tolist() == [2]
    network.advance(60_000_000)
    records = network.take_records()
    # Item 0 again at the second server, as soon as that is free; then item 2. None is lost.
    assert column(records, kernel.R_NUMBER).tolist() == [0, 1, 2]
    assert column(records, kernel.R_DONE_US).tolist() == [2_000_010, 1_000_010, 3_000_010]


def test_time_stamps_of_a_second_add_what_was_cut_off():
    exact = a_network(np.array([1_700_000]), service_cv=0.0)
    coarse = a_network(np.array([1_700_000]), service_cv=0.0, timestamp_resolution_s=1)
    for network in (exact, coarse):
        network.advance(60_000_000)
    assert exact.take_records()[0, kernel.R_DURATION_US] == 1_000_000
    assert coarse.take_records()[0, kernel.R_DURATION_US] == 1_700_000


def paused() -> QueueingNetwork:
    images, queries = poisson_us(0.7, 120), poisson_us(0.2, 30, seed=6)
    network = chained(images.tolist(), queries.tolist(), service_cv=0.5)
    network.pause(IMAGES, 20_000_000, 23_000_000)
    network.pause(IMAGES, 21_000_000, 25_000_000)
    return network


END_US = 200_000_000
TWO = a_topology(an_operator("O1", service_ms=300.0), an_operator("O2", service_ms=200.0))
WORLDS: dict[str, Callable[[], QueueingNetwork]] = {
    "a plant": a_plant,
    "bounded buffers": partial(a_chain, 300.0, 200.0, 250.0, room=3, servers=2, level=9.0),
    "one bound ahead": partial(a_network, topology=TWO, servers=2, level=5.0, prefetch=1),
    "five bound ahead": partial(a_network, topology=TWO, servers=2, level=5.0, prefetch=5),
    "chained and paused": paused,
}


@pytest.fixture(scope="module", params=WORLDS.values(), ids=[*WORLDS])
def fresh_and_uncut(request):
    uncut = records_cut(request.param, [], END_US)
    assert len(uncut) > 100
    return request.param, uncut


@settings(max_examples=25, deadline=None)
@given(cuts_us=st.lists(st.integers(1, END_US - 1), max_size=12, unique=True))
@example(cuts_us=list(range(700_000, END_US, 700_000)))
def test_results_do_not_depend_on_where_time_is_cut(fresh_and_uncut, cuts_us):
    fresh, uncut = fresh_and_uncut
    np.testing.assert_array_equal(records_cut(fresh, cuts_us, END_US), uncut)


def test_another_operator_elsewhere_leaves_the_draws_of_this_one_alone():
    alone = a_network(topology=a_topology(an_operator("O1", service_ms=300.0)), level=2.0)
    longer = a_topology(*(an_operator(name, service_ms=300.0) for name in ("O1", "O2")))
    followed = a_network(topology=longer, level=2.0)
    for network in (alone, followed):
        network.advance(600_000_000)
    ours = alone.take_records()
    theirs = followed.take_records()
    np.testing.assert_array_equal(
        column(ours, kernel.R_DONE_US),
        column(theirs[theirs[:, kernel.R_OPERATOR] == 0], kernel.R_DONE_US),
    )


TWIN = """
import hashlib
from tests.kernel.test_network import a_plant
from tests.kernel.worlds import waiting_items
network = a_plant()
network.advance(8_000_000)
network.crash_server(0, 1, 8_000_000)
network.advance(20_000_000)
print(hashlib.sha256(network.take_records().tobytes()).hexdigest())
print(waiting_items(network, 20_000_000))
"""


def test_compiled_and_plain_python_agree():
    compiled = printed(TWIN)
    assert compiled == printed(TWIN, NUMBA_DISABLE_JIT="1")
    assert len(compiled) > 64
