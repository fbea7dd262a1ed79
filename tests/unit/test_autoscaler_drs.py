"""DRS: ADSC-Resa/resa at 686b322, resa-core/src/main/java/resa/optimize.

``SimpleGeneralServiceModelTest`` gives the network that it prints results of: split 8.0 and 9.639
per second, counter 8.008 and 4.855, 4 and 2 executors.
"""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.controllers.autoscalers.drs import Drs, Greedy, Station, best_of, fewest, sojourn_s
from include.testing.builders import a_setting, a_topology
from tests.autoscaler_world import asked_for, flowing, looked

PUBLISHED = {"split": Station(8.0, 9.639, 1.0), "counter": Station(8.008, 4.855, 1.0)}


def test_the_published_network_takes_747_ms():
    """testGetErlangChainTopCompleteTime: M/M/4 and M/M/2; measured were 766 ms."""
    took_s = sojourn_s(PUBLISHED, {"split": 4, "counter": 2})
    assert took_s == pytest.approx(0.7472, abs=0.001)
    assert 0.9 < took_s / 0.7659786516853933 < 1


@pytest.mark.parametrize(("arrived", "served", "servers"), [(4.3, 0.1, 43), (16.5, 1.1, 15)])
def test_as_many_servers_as_rounding_says_suffice_take_for_ever(arrived, served, servers):
    """The share of their time is below 1, and nothing is to spare."""
    station = Station(arrived, served, 1.0)
    assert arrived / served < servers
    assert servers * served - arrived <= 0
    assert station.sojourn_s(servers) == math.inf
    greedy = Greedy({"O": station})
    greedy.give_one()
    assert greedy.sojourn_s < math.inf


networks = st.lists(
    st.builds(
        Station,
        arrived_per_s=st.floats(0.1, 12.0),
        served_per_s=st.floats(1.0, 6.0),
        visits=st.floats(0.1, 3.0),
    ),
    min_size=2,
    max_size=3,
).map(lambda stations: {f"O{n}": station for n, station in enumerate(stations)})


@settings(max_examples=60, derandomize=True, deadline=None)
@given(networks, st.integers(0, 5))
def test_giving_servers_greedily_is_as_good_as_trying_everything(stations, more):
    """The paper's Theorem 1: times fall ever more slowly with servers, so greed is right."""
    total = sum(station.least for station in stations.values()) + more
    servers = best_of(stations, total)
    ranges = [range(station.least, station.least + more + 1) for station in stations.values()]
    tried = [dict(zip(stations, servers, strict=True)) for servers in product(*ranges)]
    best_s = min(
        sojourn_s(stations, servers) for servers in tried if sum(servers.values()) == total
    )
    assert sum(servers.values()) == total
    assert sojourn_s(stations, servers) == pytest.approx(best_s, rel=1e-9)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(networks, st.floats(1.05, 3.0))
def test_the_fewest_servers_keep_the_qos_and_no_fewer_do(stations, times):
    least_s = sum(station.visits / station.served_per_s for station in stations.values())
    servers = fewest(stations, least_s * times, 1.0, 1000)
    assert sojourn_s(stations, servers) <= least_s * times
    fewer = best_of(stations, sum(servers.values()) - 1)
    assert fewer is None or sojourn_s(stations, fewer) > least_s * times


def test_what_no_number_of_servers_can_keep_is_infeasible():
    assert fewest(PUBLISHED, 0.3, 1.0, 1000) is None  # 1/9.639 + 1/4.855 are 0.31 s
    assert fewest(PUBLISHED, 0.5, 1.0, 3) is None  # three servers take longer
    assert fewest(PUBLISHED, 1.5, 1.0234548286107188, 12) == Greedy(PUBLISHED).servers
    assert fewest(PUBLISHED, 0.5, 1.5, 1000) == {"split": 3, "counter": 4}


DRS = Drs(setting=a_setting(a_topology("O1", "O2")), qos_ms=1500.0)


def decided(drs, instances, per_30_s, busy, durations_ms=(0, 0)):
    """What two looks give: items in and out of both operators, and the share of their time."""
    both = zip(("O1", "O2"), instances, per_30_s, busy, durations_ms, strict=True)
    looks = [
        flowing(name, [(*items, share)], count, durations_ms=[duration] if duration else [])
        for name, count, items, share, duration in both
    ]
    observations = [looked(30.0 * n, *each) for n, each in enumerate(zip(*looks, strict=True))]
    return asked_for(drs, *observations)[-1]


def test_it_starts_from_the_least_and_stops_at_the_qos():
    """8/s each; an instance of O1 does 9.6/s, one of O2 4.9/s."""
    servers = decided(DRS, (4, 6), ((240, 240), (240, 240)), (240 / 289 / 4, 240 / 146 / 6))
    assert servers == {"O1": 1, "O2": 2}
    tight = Drs(setting=DRS.setting, qos_ms=400.0)
    servers = decided(tight, (4, 6), ((240, 240), (240, 240)), (240 / 289 / 4, 240 / 146 / 6))
    assert servers == {"O1": 2, "O2": 3}  # 395 ms; one server fewer takes 600 ms and more


def test_where_the_qos_cannot_be_kept_the_best_use_of_what_runs():
    """``DefaultDecisionMaker`` takes it: items take 10 s, so no number of servers keeps 1.5 s."""
    servers = decided(DRS, (5, 5), ((240, 240), (240, 240)), (240 / 289 / 5, 240 / 146 / 5),
                    (5000, 5000))  # fmt: skip
    assert sum(servers.values()) == 10
    assert servers == {"O1": 4, "O2": 6}


def test_without_a_qos_o_slo_is_one():
    """1000 ms at each of two operators that every item visits."""
    loose = Drs(setting=DRS.setting)
    stations = {"O1": Station(8.0, 9.6, 1.0), "O2": Station(8.0, 4.9, 1.0)}
    assert loose._qos_s(stations) == 2.0


def test_nothing_is_decided_before_every_source_was_read():
    assert decided(DRS, (4, 6), ((0, 0), (0, 0)), (None, None)) == {}


def test_only_operators_that_nothing_reaches_have_worked_yet():
    """No time is expected of them, so there is nothing to correct."""
    assert decided(DRS, (1, 1), ((10, 0), (0, 1)), (1.0, 0.5), (0, 800)) == {"O2": 1}


def test_the_first_look_after_a_change_only_measures_anew():
    """``OptimizeTask``: "Topology allocation changed", and what was measured is discarded."""
    rows, shares = [(240, 240, 240 / 289 / 4)] * 3, [(240, 240, 240 / 146 / 6)] * 3
    before, after = (
        list(zip(flowing("O1", rows, count), flowing("O2", shares, 6), strict=True))
        for count in (4, 1)
    )
    looks = [before[0], before[1], after[2], after[3]]
    asked = asked_for(DRS, *(looked(30.0 * n, *look) for n, look in enumerate(looks)))
    assert asked[1] == {"O1": 1, "O2": 2}
    assert asked[2] == {}
    assert asked[3] != {}
    unread = [before[0], before[1], (), after[3]]
    asked = asked_for(DRS, *(looked(30.0 * n, *look) for n, look in enumerate(unread)))
    assert asked[2:] == [{}, {}], "nothing was read at the first look after it"
