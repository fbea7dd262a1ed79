"""What a controller may know beyond queues: sources, work in seconds, waiting, lateness, times."""

from __future__ import annotations

import pytest

from include.controllers.base import Delays
from include.experiment.controller_setting import delays_of
from include.experiment.run import resolve
from include.testbeds.base import ACTS
from include.testbeds.live.calibration import PARAMETERS
from include.testbeds.live.reading import LiveReading
from include.testbeds.live.samples import observed_of, operator_samples
from include.testing.builders import a_topology, an_operator
from tests.builders import a_config, resumed, run_spec, seen_at, started

PER_S = 4.0
GAP = {"monitoring_gaps_per_hour": 6}


@pytest.fixture(params=("simulated", "flow"))
def build(request):
    """Items of O1 take 100 ms, those of O2 so long as the test says; o_slo is a second."""

    def built(service_ms: float, **changes):
        operators = (an_operator("O1", service_ms=100.0), an_operator("O2", service_ms=service_ms))
        usual = {"calibration": {"sample_every_items": 1}}
        config = a_config(a_topology(*operators), PER_S, **(usual | changes))
        return started(config, request.param)

    return built


def test_a_source_tells_its_rate(build):
    testbed = build(200.0)
    assert testbed.observe().published_in_all == {"S1": 0}
    assert seen_at(testbed, 600).published_in_all["S1"] == pytest.approx(600 * PER_S, abs=PER_S)


def test_seconds_of_work_by_completed_items_are_the_service_time(build):
    testbed = build(200.0)
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


def test_nothing_waits_long_where_there_is_time_and_all_is_in_time(build):
    testbed = build(200.0)
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


def test_live_samples_tell_the_share_that_was_late():
    topology, reading = a_topology("O1"), LiveReading(waiting={"O1": 0})
    reading.arrived, reading.completed = {"O1": 9}, {"O1": 9}
    reading.recorded, reading.late = {"O1": 8}, {"O1": 2}
    assert operator_samples(topology, reading, observed_of(LiveReading(), {}, ()))[
        "O1"
    ].late_share == pytest.approx(0.25)
    again = observed_of(reading, {}, ())
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


def test_of_real_hosts_only_the_drain_is_known():
    delays = delays_of(PARAMETERS.load_calibration("default").model_dump(mode="json"))
    assert delays == Delays(drain_s=20)
