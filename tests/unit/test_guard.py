"""The guard: what it refuses, and what a refusal says."""

from __future__ import annotations

import pytest

from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.runs.guard import check
from include.testing.builders import (
    SMALL,
    a_host,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    decision,
)


def refusals(*actions, hosts=("h1", "h2"), instances=(("O1-1", "h1"), ("O2-2", "h1"))):
    observation = an_observation(
        hosts=map(a_host, hosts),
        running=[an_instance(name, name.split("-")[0], host) for name, host in instances],
        now_s=60.0,
    )
    checked = check(decision(*actions), observation, a_setting(a_topology("O1", "O2")))
    return [refusal for _, refusal in checked]


@pytest.mark.parametrize(
    ("action", "refusal"),
    [
        (StartInstance("O9", "h1"), "no operator O9"),
        (StartInstance("O1", "h9"), "h9 is not a leased host"),
        (StopInstance("O1-9"), "no running instance O1-9"),
        (StopInstance("O1-1"), "the last instance of O1"),
        (MigrateInstance("O1-9", "h2"), "no running instance"),
        (MigrateInstance("O1-1", "h1"), "is on h1 already"),
        (LeaseHost("huge", "new"), "leases flavor small, not huge"),
        (LeaseHost(SMALL.name, "h1"), "the handle h1 is taken"),
        (ProlongLease("h9"), "no lease of h9 to prolong"),
        (ReleaseHost("h9"), "no lease of h9 to end"),
        (ReleaseHost("h1"), "instances still run on h1"),
    ],
)
def test_it_refuses_what_cannot_be_done(action, refusal):
    (reason,) = refusals(action)
    assert refusal in reason


@pytest.mark.parametrize(
    "action",
    [
        StartInstance("O1", "h2"),
        MigrateInstance("O1-1", "h2"),
        ProlongLease("h1"),
        ReleaseHost("h2"),
        LeaseHost(SMALL.name, "new"),
    ],
)
def test_it_lets_through_what_can(action):
    assert refusals(action) == [""]


def test_a_full_host_takes_no_more():
    # Four instances of 1000 MB fill a SMALL host.
    *fits, too_much = refusals(*[StartInstance("O1", "h2")] * 5)
    assert fits == [""] * 4
    assert "h2 has no room for O1: 2.00 cores and 0 MB left" in too_much


@pytest.mark.parametrize("releasing", [True, False])
def test_a_host_that_is_given_back_counts_until_it_is_gone(releasing):
    hosts = [a_host("h1"), a_host("h2", releasing=releasing)]
    actions = [] if releasing else [ReleaseHost("h2")]
    setting = a_setting(a_topology("O1"), max_hosts=2)
    checked = check(
        decision(*actions, LeaseHost(SMALL.name, "new")), an_observation(hosts=hosts), setting
    )
    assert "all 2 hosts of the run are leased" in checked[-1][1]


def test_a_handle_is_a_host_for_later_steps():
    assert refusals(LeaseHost(SMALL.name, "new"), StartInstance("O1", "new")) == ["", ""]
    assert "is not a leased host" in refusals(StartInstance("O1", "new"))[0]


def test_what_was_stopped_in_the_same_decision_gives_its_room():
    full = tuple((f"O1-{i}", "h1") for i in range(4))
    assert refusals(StopInstance("O1-0"), StartInstance("O2", "h1"), instances=full) == ["", ""]
    assert "no room" in refusals(StartInstance("O2", "h1"), instances=full)[0]


def test_a_host_may_go_once_everything_on_it_was_moved():
    steps = (MigrateInstance("O1-1", "h2"), MigrateInstance("O2-2", "h2"), ReleaseHost("h1"))
    assert refusals(*steps) == ["", "", ""]


def test_an_instance_that_serves_until_its_copy_is_ready_keeps_its_room_and_its_host_may_go():
    full = tuple((f"O1-{i}", "h1") for i in range(4))
    moved = MigrateInstance("O1-0", "h2", overlaps=True)
    (_, reason) = refusals(moved, StartInstance("O2", "h1"), instances=full)
    assert "no room" in reason
    assert refusals(moved, ReleaseHost("h1"), instances=full[:1]) == ["", ""]
    assert refusals(moved, ReleaseHost("h1"), instances=full[:2])[1] != ""


def test_nobody_serves_until_its_copy_is_ready_and_for_a_given_time():
    (reason,) = refusals(MigrateInstance("O1-1", "h2", serves_s=60.0, overlaps=True))
    assert "leave serves_s at 0" in reason


def test_nothing_starts_on_a_host_that_is_released():
    reasons = refusals(ReleaseHost("h2"), StartInstance("O1", "h2"))
    assert "is not a leased host that takes instances" in reasons[1]
