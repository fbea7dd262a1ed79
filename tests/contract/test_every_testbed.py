"""What we demand of every registered testbed that needs no server."""

from __future__ import annotations

import re

import numpy as np
import pytest

from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.errors import StoreError
from include.testbeds import TESTBEDS
from include.testing.builders import SMALL, a_topology, an_operator, decision
from tests.builders import a_config, apply_at, measured_at, resumed, seen_at, tables_of

EMBEDDED = tuple(name for name, one in TESTBEDS.items() if not one.real_time)


@pytest.fixture(params=EMBEDDED)
def build(request):
    def made(topology=None, **changes):
        topology = topology or a_topology(*(an_operator(n, service_ms=100.0) for n in ("O1", "O2")))
        calibration = {"drain_s": 20, "host_boot_s": [30, 60]}
        usual = {"duration_s": 1800.0, "calibration": calibration}
        return TESTBEDS[request.param].build(a_config(topology, 4.0, **(usual | changes)))

    return made


@pytest.fixture
def testbed(build):
    testbed = build()
    start = [StartInstance(name, "first") for name in ("O1", "O2")]
    testbed.deploy(decision(LeaseHost(SMALL.name, "first"), *start))
    yield testbed
    testbed.close()
    testbed.close()  # safe to call twice


def test_what_is_deployed_is_up_before_anything_arrives(testbed):
    observation = testbed.observe()
    assert observation.now_s == 0
    assert [instance.operator for instance in observation.instances.values()] == ["O1", "O2"]
    assert all(instance.ready for instance in observation.instances.values())
    assert [host.up for host in observation.hosts.values()] == [True]


def test_time_moves_forward_only(testbed):
    testbed.advance_to(30)
    assert testbed.now_s == 30
    testbed.advance_to(30)
    with pytest.raises(ValueError, match="cannot go back"):
        testbed.advance_to(29.9)


def test_the_monitor_counts_what_flows(testbed):
    first = seen_at(testbed, 60).operators
    second = seen_at(testbed, 120).operators
    # Level 4 at one item a second each: 240 a minute, and counts are since the last look.
    assert first["O1"].arrived_items == pytest.approx(240, abs=3)
    assert second["O1"].arrived_items == pytest.approx(240, abs=3)
    assert len(second["O1"].durations_ms) == 5
    assert second["O1"].duration_ms > 50


def test_a_look_takes_nothing_from_whoever_observes(testbed, build):
    seen_at(testbed, 60)
    testbed.advance_to(120)
    looked = testbed.look()
    assert looked.operators["O1"].arrived_items == pytest.approx(240, abs=3)
    assert testbed.look() == looked
    testbed.take_measurements()
    other = resumed(testbed)
    assert testbed.observe() == other.observe() == looked
    assert testbed.look().operators["O1"].arrived_items == 0


def test_who_observes_takes_nothing_from_others(testbed, build):
    """Each sees what came since its own last look, also from a snapshot on."""
    testbed.observe()
    testbed.observe("advisor")
    testbed.advance_to(60)
    first = testbed.observe("advisor")
    assert first == testbed.look()
    testbed.advance_to(75)
    testbed.observe("advisor")
    testbed.take_measurements()
    other = resumed(testbed)
    for each in (testbed, other):
        each.advance_to(120)
        acts, advises = each.observe(), each.observe("advisor")
        assert acts.operators["O1"].arrived_items == pytest.approx(480, abs=6)
        assert advises.operators["O1"].arrived_items == pytest.approx(180, abs=3)
        assert acts.hosts == advises.hosts
        assert acts.instances == advises.instances
        assert each.observe("advisor").operators["O1"].arrived_items == 0


def test_a_new_instance_serves_after_its_host_is_up_and_its_image_is_there(testbed):
    first, second = apply_at(
        testbed, 60, LeaseHost(SMALL.name, "more"), StartInstance("O1", "more")
    )
    assert (first.accepted, second.accepted) == (True, True)
    ready = {}
    for t_s in range(75, 181, 15):
        observation = seen_at(testbed, t_s)
        ready[t_s] = observation.instances[second.subject].ready
        if observation.hosts[first.subject].up and not ready[t_s]:
            assert observation.hosts[first.subject].images == {"O1"}
    assert not ready[75], "a host takes at least 30 s to boot"
    assert ready[150], "host 60 s, start 10 s and image 15 s at most"


def test_instances_of_one_operator_wait_for_one_pull_of_its_image(build):
    quiet = {"host_boot_s": [30, 30], "instance_start_s": [1, 1], "image_pull_s": [40, 40]}
    testbed = build(calibration=quiet)
    testbed.deploy(decision(LeaseHost(SMALL.name, "first"), StartInstance("O1", "first")))
    start = [StartInstance("O1", "more")] * 2
    apply_at(testbed, 15, LeaseHost(SMALL.name, "more"), *start)  # up at 45 s
    ready = {t_s: sum(one.ready for one in seen_at(testbed, t_s).instances.values())
             for t_s in (75, 90)}  # fmt: skip
    apply_at(testbed, 90, StartInstance("O1", "host-2"))
    assert ready == {75: 1, 90: 3}
    assert all(one.ready for one in seen_at(testbed, 92).instances.values())


def test_a_stopped_instance_drains_and_only_then_gives_its_host_back(testbed):
    more = apply_at(testbed, 60, LeaseHost(SMALL.name, "more"), StartInstance("O1", "more"))
    host, instance = (outcome.subject for outcome in more)
    apply_at(testbed, 300, StopInstance(instance), ReleaseHost(host))
    assert testbed.observe().instances[instance].stopping
    assert testbed.observe().hosts[host].releasing
    assert host in seen_at(testbed, 315).hosts, "it drains for 20 s"
    assert host not in seen_at(testbed, 330).hosts
    ended_s = dict(zip(testbed.leases()["host"], testbed.leases()["ended_s"], strict=True))[host]
    assert ended_s == pytest.approx(320, abs=5)


def test_a_release_that_takes_a_moment_pays_for_the_btu_that_begins_meanwhile(build):
    calibration = {"drain_s": 0, "host_boot_s": [0, 0], "host_release_s": [2, 2]}
    testbed = build(duration_s=701.0, calibration=calibration)
    start = [StartInstance(name, "first") for name in ("O1", "O2")]
    testbed.deploy(decision(LeaseHost(SMALL.name, "first"), *start))
    ended_s = []
    for order_s, release_s in ((60, 660), (680, 700)):
        (more,) = apply_at(testbed, order_s, LeaseHost(SMALL.name, "more"))
        apply_at(testbed, release_s, ReleaseHost(more.subject))
        assert more.subject not in testbed.observe().hosts
        leases = testbed.leases()
        ended_s.append(dict(zip(leases["host"], leases["ended_s"], strict=True))[more.subject])
    assert ended_s == [662, 701], "a lease ends with the run"


def test_leases_that_have_ended_are_taken_once_and_their_names_are_not_given_again(testbed):
    (more,) = apply_at(testbed, 60, LeaseHost(SMALL.name, "more"))
    testbed.apply(decision(ReleaseHost(more.subject)))
    testbed.advance_to(120)
    taken = testbed.take_ended_leases()
    assert taken["host"] == [more.subject]
    assert taken["released"] == [True]
    assert testbed.take_ended_leases() == {name: [] for name in taken}
    assert testbed.leases()["host"] == ["host-1"]
    (again,) = testbed.apply(decision(LeaseHost(SMALL.name, "more")))
    assert again.subject == "host-3"


def test_a_migration_moves_the_instance_and_prolonging_pays_a_btu(testbed):
    (leased,) = apply_at(testbed, 60, LeaseHost(SMALL.name, "more"))
    old = next(instance.instance for instance in testbed.observe().instances.values())
    migrated, prolonged = testbed.apply(
        decision(MigrateInstance(old, leased.subject), ProlongLease(leased.subject))
    )
    observation = testbed.observe()
    assert observation.instances[old].stopping
    assert observation.instances[migrated.subject].host == leased.subject
    assert prolonged.accepted
    assert observation.hosts[leased.subject].paid_until_s == 60 + 2 * 600


def test_prolonging_pays_the_btus_that_have_begun(testbed):
    """A BTU of 600 s that ended at 600 s; at 1250 s the third has begun."""
    apply_at(testbed, 1250, ProlongLease("host-1"))
    assert testbed.observe().hosts["host-1"].paid_until_s == 1800


@pytest.mark.parametrize(
    "action",
    [
        StopInstance("O1-99"),
        ReleaseHost("host-99"),
        ProlongLease("host-99"),
        StartInstance("O1", "host-99"),
        MigrateInstance("O1-99", "host-1"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(testbed, action):
    (outcome,) = testbed.apply(decision(action))
    assert not outcome.accepted
    assert "99" in outcome.detail


def test_a_snapshot_continues_exactly(testbed, build):
    measured_at(testbed, 120)
    stored = testbed.snapshot()
    assert all(array.dtype != object for array in stored.values())
    other = build()
    other.restore(stored)
    for each in (testbed, other):
        each.advance_to(600)
    assert testbed.observe() == other.observe()
    assert tables_of(testbed) == tables_of(other)


def test_a_snapshot_of_another_version_is_refused(testbed, build):
    stored = testbed.snapshot()
    text = re.sub(rb'"version":[0-9]+', b'"version":0', stored["plain"].tobytes())
    stored["plain"] = np.frombuffer(text, dtype=np.uint8)
    with pytest.raises(StoreError, match="run it again"):
        build().restore(stored)


def test_measurements_are_handed_over_once(testbed):
    assert len(measured_at(testbed, 60)["queue"]["time_s"]) == 4 * 2
    assert "queue" not in testbed.take_measurements()


def test_a_monitoring_gap_hides_operators_but_loses_no_items(build):
    gaps = {"monitoring_gaps_per_hour": 60, "monitoring_gap_s": [30, 30]}
    testbed = build(faults=gaps)
    testbed.deploy(
        decision(LeaseHost(SMALL.name, "a"), StartInstance("O1", "a"), StartInstance("O2", "a"))
    )
    answered, arrived = [], 0
    for t_s in range(15, 901, 15):
        now = seen_at(testbed, t_s)
        answered.append(bool(now.operators))
        arrived += now.operators["O1"].arrived_items if now.operators else 0
    assert any(answered)
    assert not all(answered)
    last_seen = max(i for i, has_answer in enumerate(answered) if has_answer)
    assert arrived == pytest.approx(4 * 15 * (last_seen + 1), abs=3)


def test_lost_hosts_and_crashed_instances_disappear_and_queue_their_items_again(build):
    testbed = build(faults={"host_losses_per_hour": 6, "instance_crashes_per_hour": 30})
    testbed.deploy(
        decision(
            LeaseHost(SMALL.name, "a"),
            LeaseHost(SMALL.name, "b"),
            StartInstance("O1", "a"),
            StartInstance("O1", "b"),
            StartInstance("O2", "b"),
        )
    )
    events = measured_at(testbed, 1800)["event"]
    assert {"host_lost", "instance_crash"} <= set(events["event"])
    assert testbed.observe().instances == {}
    assert not any(testbed.observe().hosts)
    assert all(testbed.leases()["released"])


@pytest.mark.parametrize(
    ("crash_s", "loss_s", "end_s", "event"),
    [(310, 400, 310, ["instance_crash"]), (400, 325, 320, []), (325, 400, 320, [])],
)
def test_a_released_host_ends_with_its_last_instance_whatever_fails_then(
    build, crash_s, loss_s, end_s, event
):
    """It drains from 300 s to 320 s, and readings are at 315 s and 330 s."""
    testbed = build(faults={"host_losses_per_hour": 1e-6})
    start = [StartInstance(name, "first") for name in ("O1", "O2")]
    leases = [LeaseHost(SMALL.name, "first"), LeaseHost(SMALL.name, "more")]
    testbed.deploy(decision(*leases, *start, StartInstance("O1", "more")))
    apply_at(testbed, 300, StopInstance("O1-3"), ReleaseHost("host-2"))
    testbed.fleet.instances[3].crashes_us = round(crash_s * 1e6)
    testbed.fleet.hosts[2].fails_us = round(loss_s * 1e6)
    taken = measured_at(testbed, 345)
    assert taken.get("event", {"event": []})["event"] == event
    leases = testbed.leases()
    assert dict(zip(leases["host"], leases["ended_s"], strict=True))["host-2"] == end_s


def test_what_is_deployed_may_crash_at_once(build):
    """One a second on average; without that they would last for the start that they do not have."""
    testbed = build(faults={"instance_crashes_per_hour": 3600})
    start = [StartInstance("O1", "a")] * 4
    testbed.deploy(decision(LeaseHost(SMALL.name, "a"), *start))
    assert measured_at(testbed, 15)["event"]["event"] == ["instance_crash"] * 4


def test_a_boot_that_fails_ends_the_lease_and_takes_what_was_planned_on_it(build):
    testbed = build(faults={"host_boot_failure": 1.0})
    apply_at(testbed, 15, LeaseHost(SMALL.name, "a"), StartInstance("O1", "a"))
    assert seen_at(testbed, 90).hosts == {}
    assert testbed.observe().instances == {}
    assert testbed.take_measurements()["event"]["event"] == ["host_boot_failure"]
