"""A migration that overlaps, on every testbed that needs no server: the old one serves until its
copy is ready, whatever else happens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.model.decision import LeaseHost, MigrateInstance, ReleaseHost, StartInstance
from include.model.decision import StopInstance as Stop
from include.testbeds import TESTBEDS
from include.testing.builders import SMALL, a_topology, an_operator, decision
from include.workloads.pattern import Levels
from tests.builders import a_config, apply_at, seen_at
from tests.kernel.flows import QUIET

EMBEDDED = tuple(name for name, one in TESTBEDS.items() if not one.real_time)
START_S, PULL_S, DRAIN_S, BOOT_S = 8, 12, 20, 40
CALIBRATION = QUIET | {
    "host_boot_s": [BOOT_S, BOOT_S],
    "instance_start_s": [START_S, START_S],
    "image_pull_s": [PULL_S, PULL_S],
    "drain_s": DRAIN_S,
}
PER_S, ARRIVES_S = 9, 300
"""An instance does ten items a second, so it needs a while for what has gathered in a gap."""


@pytest.fixture(params=EMBEDDED)
def kind(request):
    return request.param


def a_world(kind: str, instances: int = 1, **changes: Any) -> Any:
    """Instances of O1 on host-1, and host-2 without any; as many items as they can just do."""
    levels = Levels((0.0, float(ARRIVES_S)), (float(PER_S * instances), 0.0))
    usual = {"duration_s": 600.0, "monitor_every_s": 1.0, "calibration": CALIBRATION}
    topology = a_topology(an_operator("O1", service_ms=100.0))
    testbed = TESTBEDS[kind].build(a_config(topology, levels, **(usual | changes)))
    hosts = [LeaseHost(SMALL.name, "a"), LeaseHost(SMALL.name, "b")]
    testbed.deploy(decision(*hosts, *[StartInstance("O1", "a")] * instances))
    return testbed


def migrate(testbed: Any, instance: str = "O1-1", host: str = "host-2", **changes: Any) -> str:
    """Returns the name of the copy."""
    action = MigrateInstance(instance, host, **({"overlaps": True} | changes))
    (outcome,) = testbed.apply(decision(action))
    assert outcome.accepted
    return outcome.subject


def moving(kind: str, *, overlaps: bool = True, **changes: Any) -> tuple[Any, str]:
    """A world at 60 s, when O1-1 begins to migrate to host-2; and the name of its copy."""
    testbed = a_world(kind, **changes)
    testbed.advance_to(60)
    return testbed, migrate(testbed, overlaps=overlaps)


def ended_s(testbed: Any, host: str) -> float:
    log = testbed.leases()
    return dict(zip(log["host"], log["ended_s"], strict=True))[host]


def assert_nothing_lost(testbed: Any, instances: int = 1) -> None:
    observation = seen_at(testbed, 600)
    published = PER_S * instances * ARRIVES_S
    assert observation.published_in_all == {"S1": pytest.approx(published, abs=1)}
    sample = observation.operators["O1"]
    assert sample.arrived_in_all == sample.completed_in_all == observation.published_in_all["S1"]


@settings(max_examples=12, deadline=None)
@given(
    kind=st.sampled_from(EMBEDDED),
    instances=st.integers(1, 3),
    at_s=st.integers(1, 200),
    cached=st.booleans(),
    released=st.booleans(),
)
def test_nothing_is_lost_and_no_fewer_are_ready_at_any_time(
    kind: str, instances: int, at_s: int, cached: bool, released: bool
) -> None:
    """All of them move at once, so a gap would show however many there are."""
    testbed = a_world(kind, instances)
    if cached:
        testbed.fleet.host("host-2").images.append("O1")
    testbed.advance_to(at_s)
    moves = [MigrateInstance(f"O1-{n}", "host-2", overlaps=True) for n in range(1, instances + 1)]
    testbed.apply(decision(*moves, *([ReleaseHost("host-1")] if released else [])))
    assert_nothing_lost(testbed, instances)
    queue = testbed.take_measurements()["queue"]
    assert min(queue["ready_instances"]) == instances
    assert max(queue["ready_instances"]) == instances, "a copy is ready: the old one stops"
    assert max(queue["waiting_items"]) <= instances, "in front of a gap they would gather"
    assert list(testbed.observe().instances) == [
        f"O1-{instances + n + 1}" for n in range(instances)
    ]


def test_without_overlap_items_gather_where_the_old_one_stops_at_once() -> None:
    testbed = a_world("simulated")
    testbed.advance_to(60)
    migrate(testbed, overlaps=False)
    assert_nothing_lost(testbed)
    queue = testbed.take_measurements()["queue"]
    assert min(queue["ready_instances"]) == 0
    assert max(queue["waiting_items"]) == pytest.approx(PER_S * (START_S + PULL_S), abs=2)


def test_it_stops_when_its_copy_is_ready_and_its_host_ends_when_it_has_drained(kind):
    testbed, copy = moving(kind)
    testbed.apply(decision(ReleaseHost("host-1")))
    observation = seen_at(testbed, 60 + START_S + PULL_S - 1)
    assert [(instance.ready, instance.stopping) for instance in observation.instances.values()] == [
        (True, True),
        (False, False),
    ]
    assert observation.hosts["host-1"].releasing
    assert observation.operators["O1"].busy_share == pytest.approx(0.9, abs=0.02), (
        "it works as before"
    )
    assert "host-1" in seen_at(testbed, 60 + START_S + PULL_S + DRAIN_S - 1).hosts
    observation = seen_at(testbed, 60 + START_S + PULL_S + DRAIN_S)
    assert (list(observation.hosts), list(observation.instances)) == (["host-2"], [copy])
    assert ended_s(testbed, "host-1") == 60 + START_S + PULL_S + DRAIN_S
    assert_nothing_lost(testbed)


def test_while_it_waits_nobody_can_decide_on_it(kind):
    testbed, _ = moving(kind)
    again = (Stop("O1-1"), MigrateInstance("O1-1", "host-2", overlaps=True))
    assert not any(outcome.accepted for outcome in testbed.apply(decision(*again)))


def test_where_the_host_of_the_copy_does_not_boot_everything_is_as_before(kind):
    testbed = a_world(kind, faults={"host_boot_failure": 1.0})
    moved = MigrateInstance("O1-1", "new", overlaps=True)
    apply_at(testbed, 60, LeaseHost(SMALL.name, "new"), moved, ReleaseHost("host-1"))
    observation = seen_at(testbed, 60 + BOOT_S + 10)
    (left,) = observation.instances.values()
    assert (left.instance, left.ready, left.stopping) == ("O1-1", True, False)
    assert list(observation.hosts) == ["host-1", "host-2"]
    assert not observation.hosts["host-1"].releasing, "somebody has to decide on it again"
    measured = testbed.take_measurements()
    assert measured["event"]["event"] == ["migration_undone", "host_boot_failure"]
    assert measured["event"]["subject"] == ["O1-1", "host-3"]
    assert min(measured["queue"]["ready_instances"]) == 1
    migrate(testbed)
    testbed.apply(decision(ReleaseHost("host-1")))
    assert_nothing_lost(testbed)
    assert list(testbed.observe().instances) == ["O1-3"]


@pytest.mark.parametrize("lost", ["instance", "host"])
def test_where_the_copy_is_lost_before_it_is_ready_the_old_one_goes_on(kind, lost):
    testbed, copy = moving(kind)
    testbed.advance_to(70)
    fleet = testbed.fleet
    testbed.fail(fleet.instance(copy) if lost == "instance" else fleet.host("host-2"))
    (left,) = testbed.observe().instances.values()
    assert (left.instance, left.stopping) == ("O1-1", False)
    assert_nothing_lost(testbed)
    assert set(testbed.take_measurements()["queue"]["ready_instances"]) == {1}


def test_without_overlap_no_host_is_left_to_itself_where_the_copy_is_lost(kind):
    """Either the old one goes on, and somebody can decide on its host, or both end."""
    testbed, copy = moving(kind, overlaps=False)
    testbed.apply(decision(ReleaseHost("host-1")))
    testbed.advance_to(70)
    testbed.fail(testbed.fleet.instance(copy))
    observation = seen_at(testbed, 120)
    goes_on = ["O1-1"] if kind == "flow" else []
    assert list(observation.instances) == goes_on
    assert not any(host.releasing for host in observation.hosts.values())
    undone = ["migration_undone"] * len(goes_on)
    assert testbed.take_measurements()["event"]["event"] == [*undone, "instance_crash"]


def test_once_the_copy_is_ready_the_old_one_ends_whatever_becomes_of_it(kind):
    testbed, copy = moving(kind)
    testbed.advance_to(60 + START_S + PULL_S)
    testbed.fail(testbed.fleet.instance(copy))
    (left,) = testbed.observe().instances.values()
    assert left.stopping
    assert seen_at(testbed, 60 + START_S + PULL_S + DRAIN_S).instances == {}


def test_where_the_old_one_is_lost_its_copy_is_there_soon(kind):
    testbed, copy = moving(kind)
    testbed.fail(testbed.fleet.host("host-1"))
    assert_nothing_lost(testbed)
    assert list(testbed.observe().instances) == [copy]


def test_a_copy_that_is_stopped_before_it_is_ready_leaves_the_old_one_in_place(kind):
    testbed, copy = moving(kind)
    testbed.apply(decision(ReleaseHost("host-1"), Stop(copy)))
    observation = testbed.observe()
    assert not observation.instances["O1-1"].stopping
    assert not observation.hosts["host-1"].releasing
    assert_nothing_lost(testbed)
    assert list(testbed.observe().instances) == ["O1-1"]


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("back_s", [2, 15])
def test_a_copy_that_migrates_before_it_is_ready_leaves_the_old_one_to_its_own(
    kind, overlaps, back_s
):
    """The image is on host-1, so the second copy may be ready before the first."""
    testbed, first = moving(kind)
    testbed.advance_to(60 + back_s)
    second = migrate(testbed, first, "host-1", overlaps=overlaps)
    assert seen_at(testbed, 60 + back_s + START_S - 1).instances["O1-1"].ready
    assert_nothing_lost(testbed)
    assert list(testbed.observe().instances) == [second]
    queue = testbed.take_measurements()["queue"]
    assert min(queue["ready_instances"]) == 1
