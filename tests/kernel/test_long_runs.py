"""What is kept of a run does not grow with it: neither arrivals, stalls, leases nor instances."""

from __future__ import annotations

import numpy as np
import pytest

from include.model.decision import LeaseHost, ReleaseHost, StartInstance, StopInstance
from include.testbeds.simulated import kernel
from include.testbeds.simulated.kernel import BLOCK, NEVER
from include.testbeds.simulated.publications import Publications, RandomPublications
from include.testbeds.virtual.draws import Draws
from include.testbeds.virtual.testbed import VirtualTestbed
from include.testing.builders import SMALL, a_topology, an_operator, decision
from include.workloads.pattern import Levels
from tests.builders import a_config, apply_at, seen_at, started
from tests.kernel.worlds import a_network, column

HOUR_US = 3_600_000_000
DAY_S = 86_400.0


def held_bytes(network) -> int:
    return sum(array.nbytes for array in network.state) + sum(
        publications.first.nbytes + publications.pieces.nbytes
        for publications in network.publications
    )


def test_a_network_of_two_weeks_is_as_large_as_one_of_an_hour():
    hour, weeks = (a_network(duration_s=s, level=50.0) for s in (3600.0, 14 * DAY_S))
    assert held_bytes(weeks) == held_bytes(hour)


def test_items_are_published_at_the_same_times_whichever_are_asked_for():
    levels = Levels((0.0, 7.5, 20.0, 31.0), (3.0, 0.0, 0.3, 12.0))
    publications = Publications.from_levels(levels, 1 / 0.48, 60.0)
    assert publications.first[-1] == 779
    whole_us = publications.times_us(0, 779)
    for first, last in ((0, 1), (40, 60), (700, 779)):
        assert publications.times_us(first, last).tolist() == whole_us[first:last].tolist()
    assert publications.times_us(778, 781).tolist() == [whole_us[-1], NEVER, NEVER]


@pytest.mark.parametrize("cv", [0.5, 1.0, 2.0])
def test_random_gaps_have_their_mean_and_their_cv(cv):
    levels = Levels((0.0, 400.0, 800.0), (10.0, 0.0, 40.0))
    generator = Draws(1).generator("arrivals", "S1")
    random = RandomPublications.from_levels(levels, 1.0, 1200.0, cv, generator)
    times_s = random.all_us / 1e6
    assert not ((times_s > 400) & (times_s < 800)).any()
    for start_s, end_s, rate in ((0, 400, 10.0), (800, 1200, 40.0)):
        gaps_s = np.diff(times_s[(times_s >= start_s) & (times_s < end_s)])
        within = 4 * cv / np.sqrt(len(gaps_s))
        assert gaps_s.mean() == pytest.approx(1 / rate, rel=within)
        assert gaps_s.std() / gaps_s.mean() == pytest.approx(cv, rel=0.1)


def test_random_items_are_published_at_the_same_times_whichever_are_asked_for():
    generator = Draws(1).generator("arrivals", "S1")
    random = RandomPublications.from_levels(Levels((0.0,), (3.0,)), 1.0, 60.0, 1.0, generator)
    count = len(random.all_us)
    assert random.times_us(40, 60).tolist() == random.all_us[40:60].tolist()
    assert random.times_us(count - 1, count + 2).tolist() == [random.all_us[-1], NEVER, NEVER]
    assert set(random.times_us(count + 5, count + 8).tolist()) == {NEVER}


def test_a_source_publishes_all_its_items_over_many_rings():
    network = a_network(duration_s=3600, level=10.0, service_cv=0.0, sample_every_items=1000)
    network.advance(2 * HOUR_US)
    assert network.state.nodes[-1, kernel.NUMBERED] == 36_000 > 2 * BLOCK


@pytest.fixture
def stalled():
    network = a_network(duration_s=14 * DAY_S, level=0.01, stalls_per_hour=60, stall_s=(2, 7.5))
    assert network.state.stalls_us.shape[1] < 10
    return network


def test_stalls_that_have_ended_are_forgotten(stalled):
    counts = set()
    for reading_us in range(60_000_000, 5 * HOUR_US, 60_000_000):
        stalled.advance(reading_us)
        stalled.read(reading_us, 60_000_000)
        counts.add(int((stalled.state.stalls_us[0, :, 0] != NEVER).sum()))
    assert max(counts) < 10
    stored = stalled.arrays()
    assert stored["stalls_begun"][0] > 200
    assert stored["stalls_us"].nbytes < 400


def test_a_snapshot_goes_on_with_the_stalls_that_were_to_come(stalled):
    stalled.advance(HOUR_US)
    copy = a_network(duration_s=14 * DAY_S, level=0.01, stalls_per_hour=60, stall_s=(2, 7.5))
    copy.load(stalled.arrays())
    for network in (stalled, copy):
        network.take_records()
        network.advance(5 * HOUR_US)
    records = [network.take_records() for network in (stalled, copy)]
    assert len(records[0]) > 100
    np.testing.assert_array_equal(*records)
    np.testing.assert_array_equal(stalled.state.stalls_us, copy.state.stalls_us)


def test_items_wait_through_pauses_without_a_gap_whenever_the_monitor_reads():
    network = a_network(np.array([1_000_000]), service_cv=0.0)
    network.pause(0, 0, 2_000_000)
    network.pause(0, 2_000_000, 4_000_000)
    for reading_us in range(500_000, 6_000_000, 500_000):
        network.advance(reading_us)
        network.read(reading_us, 500_000)
    assert column(network.take_records(), kernel.R_WAIT_US).tolist() == [3_000_000]


@pytest.fixture
def testbed() -> VirtualTestbed:
    calibration = {"drain_s": 20, "service_cv": 0}
    config = a_config(
        a_topology(an_operator("O1", service_ms=100.0)),
        duration_s=14 * DAY_S,
        calibration=calibration,
    )
    return started(config, "simulated")


def test_what_is_kept_after_many_leases_is_what_was_kept_after_one(testbed):
    sizes, taken = [], 0
    for turn in range(100):
        start_s = 300.0 * turn
        more = apply_at(testbed, start_s, LeaseHost(SMALL.name, "b"), StartInstance("O1", "b"))
        testbed.advance_to(start_s + 150)
        stop = StopInstance(more[1].subject), ReleaseHost(more[0].subject)
        testbed.apply(decision(*stop))
        seen_at(testbed, start_s + 300)
        testbed.take_measurements()
        taken += len(testbed.take_ended_leases()["host"])
        sizes.append(sum(array.nbytes for array in testbed.snapshot().values()))
    assert taken == 100
    assert len(testbed.fleet.hosts) == len(testbed.fleet.instances) == 1
    assert testbed.network.state.free_us.shape[1] <= 8
    # Times and counts get a few digits longer.
    assert sizes[-1] <= 1.02 * sizes[9]
