"""What a controller may know beyond queues: sources, work, waiting, lateness, times.

Of the work of instances it is told their share of time, and counts that only grow.
"""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from include.controllers.base import Delays
from include.experiment.controller_setting import delays_of
from include.experiment.run import resolve
from include.model.decision import LeaseHost, StartInstance, StopInstance
from include.testbeds.base import ACTS
from include.testbeds.live.calibration import PARAMETERS
from include.testbeds.live.reading import LiveReading, observed_of, operator_samples
from include.testbeds.virtual.monitor import BusyMeter
from include.testing.builders import SMALL, a_topology, an_operator, decision
from tests.builders import a_config, apply_at, resumed, run_spec, seen_at, started

PER_S, PERIOD_S = 4.0, 15.0
GAP = {"monitoring_gaps_per_hour": 6}


@pytest.fixture(params=("simulated", "flow"))
def build(request):
    """Items of O1 take 100 ms, those of O2 so long as the test says; o_slo is a second."""

    def built(service_ms: float, **changes):
        operators = (an_operator("O1", service_ms=100.0), an_operator("O2", service_ms=service_ms))
        calibration = {"sample_every_items": 1, "drain_s": 20, "host_boot_s": [30, 60]}
        calibration |= changes.pop("calibration", {})
        config = a_config(a_topology(*operators), PER_S, calibration=calibration, **changes)
        return started(config, request.param)

    return built


@pytest.fixture
def testbed(build):
    """Of O2 an item takes 200 ms."""
    return build(200.0)


def test_a_source_tells_its_rate(testbed):
    assert testbed.observe().published_in_all == {"S1": 0}
    assert seen_at(testbed, 600).published_in_all["S1"] == pytest.approx(600 * PER_S, abs=PER_S)


def test_seconds_of_work_by_completed_items_are_the_service_time(testbed):
    sample = seen_at(testbed, 3000).operators["O2"]
    assert sample.busy_in_all_s / sample.completed_in_all == pytest.approx(0.2, abs=0.01)


def test_work_that_the_monitor_missed_counts_all_the_same(build):
    testbed = build(200.0, faults=GAP)
    missed = 0
    for t_s in range(15, 3600, 15):
        observation = seen_at(testbed, t_s)
        missed += not observation.operators
        assert bool(observation.published_in_all) == bool(observation.operators)
    assert missed
    last = testbed.observe().operators["O1"]
    assert last.busy_in_all_s / last.completed_in_all == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("lost", [False, True])
def test_what_an_instance_worked_before_it_left_counts(build, lost):
    """It works 7 s of 15 s, and is gone when the monitor reads: 40 % of that would be missing."""
    testbed = build(200.0, calibration={"drain_s": 0, "service_cv": 0.0})
    apply_at(testbed, 30, StartInstance("O2", "host-1"))
    before = seen_at(testbed, 300).operators["O2"]
    testbed.advance_to(307)
    if lost:
        testbed.fail(testbed.fleet.instances[3])
    else:
        testbed.apply(decision(StopInstance("O2-3")))
    testbed.advance_to(308)
    testbed.observe(ACTS)
    testbed.take_measurements()
    testbed = resumed(testbed)
    sample = seen_at(testbed, 315).operators["O2"]
    worked_s = sample.busy_in_all_s - before.busy_in_all_s
    items = sample.completed_in_all - before.completed_in_all
    assert worked_s / items == pytest.approx(0.2, abs=0.01)


def test_nothing_waits_long_where_there_is_time_and_all_is_in_time(testbed):
    sample = seen_at(testbed, 600).operators["O1"]
    assert 0 <= sample.oldest_waits_s < 2
    assert sample.late_share == 0.0
    assert testbed.observe().operators["O1"].late_share is None  # nothing since that look


def test_the_oldest_item_waits_for_what_the_queue_takes(build):
    """Twice as much work as one instance does: half of what came waits, in order."""
    testbed = build(500.0)
    sample = seen_at(testbed, 600).operators["O2"]
    assert sample.oldest_waits_s == pytest.approx(sample.waiting_items / PER_S, rel=0.1)
    assert sample.oldest_waits_s > 200
    assert seen_at(testbed, 900).operators["O2"].late_share == 1.0


def test_each_who_looks_sees_the_lateness_since_its_own_look(build):
    testbed = build(500.0)
    testbed.advance_to(30)
    testbed.observe(ACTS)
    testbed.advance_to(600)
    whole = testbed.observe("advisor").operators["O2"].late_share
    other = resumed(testbed)
    for each in (testbed, other):
        assert each.observe(ACTS).operators["O2"].late_share > whole > 0.9


def test_nothing_is_known_before_the_first_reading(testbed):
    sample = testbed.observe().operators["O1"]
    assert (sample.busy_share, sample.busiest_share) == (None, None)


def test_the_share_is_arrivals_times_service_time(testbed):
    samples = seen_at(testbed, 3000).operators
    assert samples["O1"].busy_share == pytest.approx(0.4, abs=0.02)
    assert samples["O2"].busy_share == pytest.approx(0.8, abs=0.03)
    assert samples["O2"].busiest_share == samples["O2"].busy_share


def test_an_instance_that_is_not_ready_or_stops_is_not_idle(testbed):
    """It could not have worked, so the mean stays what the other one does."""
    seen_at(testbed, 600)
    testbed.apply(decision(LeaseHost(SMALL.name, "second"), StartInstance("O2", "second")))
    testbed.advance_to(615)  # its host boots for 30 seconds at least
    sample = testbed.observe().operators["O2"]
    assert sample.busiest_share == sample.busy_share > 0
    seen_at(testbed, 1200)
    both = seen_at(testbed, 2400)
    assert both.operators["O2"].busy_share == pytest.approx(0.4, abs=0.05)
    testbed.apply(decision(StopInstance(both.serving("O2")[-1].instance)))
    assert seen_at(testbed, 2415).operators["O2"].busy_share > 0.6


def test_counts_since_the_beginning_miss_nothing_whoever_looks(testbed):
    counted = Counter()
    for t_s in (150, 160, 160, 300):
        sample = seen_at(testbed, t_s).operators["O1"]
        counted.update(arrived=sample.arrived_items, completed=sample.completed_items)
        assert (sample.arrived_in_all, sample.completed_in_all) == (
            counted["arrived"],
            counted["completed"],
        )
    assert counted["arrived"] > 1000


def test_the_busiest_is_one_instance_over_the_whole_time():
    meter = BusyMeter(2)
    rows, numbers = np.array([0, 0]), np.array([4, 7])
    meter.read(rows, numbers, np.array([15.0, 0.0]), np.array([15.0, 15.0]))
    meter.read(rows, numbers, np.array([0.0, 6.0]), np.array([15.0, 15.0]))
    assert meter.latest_shares() == [(0.35, 0.5), None]


class Live:
    """Two instances of O1 in containers, read when they had worked for these seconds."""

    topology = a_topology("O1")
    instances = tuple(
        SimpleNamespace(name=name, operator="O1", serves=True) for name in ("O1-1", "O1-2")
    )

    def look(self, before, wall_s, **busy_s):
        reading = LiveReading(
            wall_us=int(wall_s * 1e6),
            waiting={"O1": 0},
            arrived={"O1": 9},
            completed={"O1": 7},
            busy_of={name.replace("_", "-"): worked for name, worked in busy_s.items()},
        )
        now = observed_of(reading, before, self.instances, 1.0)
        sample = operator_samples(self.topology, reading, {**before, "busy": now["busy"]})["O1"]
        return now, (sample.busy_share, sample.busiest_share, sample.completed_in_all)


def test_live_instances_are_as_busy_as_they_worked_since_the_last_look():
    world = Live()
    nothing = {"arrived": {}, "completed": {}}
    first, shares = world.look(nothing, 100, O1_1=1.0)
    assert shares == (None, None, 7)  # read once, so nobody knows since when it worked
    second, shares = world.look(first, 130, O1_1=16.0, O1_2=3.0)
    assert shares == (0.5, 0.5, 7)  # the second one has been read once only
    third, shares = world.look(second, 160, O1_1=16.0, O1_2=33.0)
    assert shares == (0.5, 1.0, 7)
    assert world.look(third, 160, O1_1=16.0, O1_2=33.0)[1] == shares  # the same reading


def test_live_samples_tell_the_share_that_was_late():
    topology, reading = a_topology("O1"), LiveReading(waiting={"O1": 0})
    reading.arrived, reading.completed = {"O1": 9}, {"O1": 9}
    reading.recorded, reading.late = {"O1": 8}, {"O1": 2}
    assert operator_samples(topology, reading, observed_of(LiveReading(), {}, (), 1.0))[
        "O1"
    ].late_share == pytest.approx(0.25)
    again = observed_of(reading, {}, (), 1.0)
    observation = operator_samples(topology, reading, again)["O1"]
    assert (observation.late_share, observation.busy_in_all_s, observation.oldest_waits_s) == (
        None,
        None,
        None,
    )


SPEC = run_spec(experiment="x", controller="fixed", duration_min=120)


def test_a_setting_says_how_long_things_take():
    assert resolve(SPEC).setting.delays == Delays(
        host_boot_s=45.0,
        instance_start_s=7.5,
        image_pull_s=10.0,
        drain_s=20,
    )


def test_of_real_hosts_no_delay_is_known():
    delays = delays_of(PARAMETERS.load_calibration("default").model_dump(mode="json"))
    assert delays == Delays()
