"""The working copy of one decision: what it counts, and that no room is given twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.controllers.plan import Plan
from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    Reason,
    StartInstance,
    StopInstance,
    Why,
)
from include.model.host import Capacity, btus_to_pay
from include.testing.builders import (
    a_host,
    a_setting,
    an_instance,
    an_observation,
    instances,
    why,
)


def a_plan(**parts: object) -> Plan:
    return Plan(a_setting(), an_observation(**parts))


def test_hosts_come_in_the_order_of_their_lease_and_h2_before_h10() -> None:
    plan = a_plan(hosts=[a_host("h10"), a_host("h2"), a_host("h1", ordered_s=5.0)])
    assert list(plan.free) == ["h2", "h10", "h1"]


def test_a_start_takes_room_and_a_stop_gives_it_back() -> None:
    plan = a_plan(hosts=[a_host("h1")], running=instances({"h1": "O1 O1"}))
    plan.start("O2", "h1", why("needed"))
    assert plan.free["h1"].left == Capacity(2.5, 1000.0)
    plan.stop(plan.serving("O1")[0], why("spare"))
    assert plan.free["h1"].left == Capacity(3.0, 2000.0)
    assert (plan.count("O1"), plan.count("O2")) == (1, 1)
    assert plan.decision(why()).actions == (StartInstance("O2", "h1"), StopInstance("i1"))


def test_instances_are_counted_on_some_hosts_as_far_as_the_plan_can_still_stop_them() -> None:
    running = [
        *instances({"h1": "O1 O2 O1", "h2": "O1", "h9": "O2"}),
        an_instance("i9", "O1", "h1", stopping=True),
    ]
    plan = a_plan(hosts=[a_host("h1"), a_host("h2")], running=running)
    names = plan.operator_names
    plan.stop(plan.serving("O1")[0], why("spare"))
    plan.start("O1", "h2", why("needed"))
    for hosts in ({"h1"}, {"h2"}, {"h1", "h2"}, {"h9"}, set[str]()):
        counted = [sum(instance.host in hosts for instance in plan.serving(name)) for name in names]
        assert plan.counts_on(hosts).tolist() == counted
    assert plan.counts_on({"h1"}).sum() == 2


def test_a_migration_takes_room_there_and_keeps_it_here() -> None:
    running = instances({"h1": "O1"})
    plan = a_plan(hosts=[a_host("h1"), a_host("h2")], running=running)
    plan.migrate(running[0], "h2", why("h1 goes"))
    assert plan.free["h1"].left == plan.free["h2"].left == Capacity(3.5, 3000.0)
    assert plan.count("O1") == 1
    assert plan.serving("O1") == plan.on_host("h1") == plan.on_host("h2") == ()
    assert plan.decision(why()).actions == (MigrateInstance("i1", "h2"),)


def test_the_last_instance_and_the_last_ready_one_may_not_stop() -> None:
    plan = a_plan(hosts=[a_host("h1")], running=instances({"h1": "O1"}))
    assert not plan.may_stop(plan.serving("O1")[0])
    plan.start("O1", "h1", why("a start of this plan is no replacement yet"))
    assert not plan.may_stop(plan.serving("O1")[0])

    starting = an_instance("i2", "O1", ready=False, started_s=9.0)
    running = [*instances({"h1": "O1"}), starting]
    plan = a_plan(hosts=[a_host("h1")], running=running)
    assert [plan.may_stop(instance) for instance in plan.serving("O1")] == [False, True]


def test_an_order_is_recent_whether_seen_or_planned() -> None:
    plan = a_plan(hosts=[a_host("h1", ordered_s=3500.0)], now_s=3600.0)
    assert plan.last_order_was_within(101.0)
    assert not plan.last_order_was_within(100.0)
    assert not a_plan().last_order_was_within(1e9)
    plan.lease(why("needed"))
    assert plan.last_order_was_within(0.0)


def test_the_summary_counts_the_steps_and_gives_the_first_reason() -> None:
    plan = a_plan(hosts=[a_host("h1")])
    assert plan.decision(why("nothing to do")).because == "nothing to do"
    plan.start("O1", "h1", why("O1 is late"))
    plan.start("O2", "h1", why("O2 is late"))
    plan.lease(why("no room"))
    assert plan.decision(why()).because == "start 2, lease 1; O1 is late"


def test_a_lease_that_ended_between_two_decisions_is_kept_and_said_so() -> None:
    plan = a_plan(hosts=[a_host("h1", paid_until_s=55.0)], now_s=60.0)
    plan.keep_leases(0.0)
    assert plan.decision(why()).because == "prolong 1; h1 is kept: its BTU ended 5 s ago"


@pytest.mark.parametrize(
    ("left_s", "btus"), [(60.0, 1), (0.0, 1), (-59.0, 1), (-60.0, 2), (-90.0, 2), (-130.0, 3)]
)
def test_a_lease_is_prolonged_by_the_btus_that_have_begun(left_s: float, btus: int) -> None:
    """A BTU of 60 s; one that is longer than the interval of decisions is one."""
    assert btus_to_pay(600.0 + left_s, 600.0, 60.0) == btus


def test_it_says_what_it_has_started() -> None:
    plan = a_plan(hosts=[a_host("h1")])
    plan.start("O1", "h1", why("needed"))
    assert plan.started == {"O1"}


@pytest.mark.parametrize(("limit", "leases"), [(3, 0), (4, 0), (5, 1)])
def test_hosts_that_leave_count_against_the_limit(limit: int, leases: int) -> None:
    """One leaves since a decision before, one by this plan."""
    hosts = [a_host("h1"), a_host("h2", releasing=True), a_host("h3"), a_host("h4")]
    plan = Plan(a_setting(max_hosts=limit), an_observation(hosts=hosts))
    plan.release(plan.hosts[-1], why("empty"))
    while plan.may_lease:
        plan.lease(why("needed"))
    assert plan.steps_of(LeaseHost) == leases


@pytest.mark.parametrize("cpu_shared", [False, True])
def test_many_starts_are_those_of_one_after_the_other(cpu_shared: bool) -> None:
    """Until nothing fits any more; where the CPU is shared, on the emptiest host."""
    setting = a_setting()
    setting = replace(setting, flavor=replace(setting.flavor, cpu_shared=cpu_shared))
    observation = an_observation(hosts=[a_host("host-1"), a_host("host-2", up=False)])
    together, each = Plan(setting, observation), Plan(setting, observation)
    names = [*each.operator_names] * 10
    reason = Reason.QUEUE_LONG
    started = together.start_each(names, lambda rows: [(f"{i}", reason) for i in rows])
    expected = []
    for i, name in enumerate(names):
        host = each.most_suitable(each.operator(name))
        if host is not None:
            each.start(name, host, Why(reason, f"{i}"))
            expected.append(i)
    assert started == expected
    assert 0 < len(started) < len(names)
    assert together.decision(why()) == each.decision(why())
    assert together.scaled() == each.scaled()
    assert together.counts.tolist() == each.counts.tolist()
    assert dict(together.free) == dict(each.free)
    assert together.started == each.started
    assert [together.is_given_work(host) for host in ("host-1", "host-2")] == [
        each.is_given_work(host) for host in ("host-1", "host-2")
    ]


def test_what_is_tried_on_a_copy_does_not_happen() -> None:
    hosts = [a_host("h1"), a_host("h2"), a_host("h3")]
    plan = a_plan(hosts=hosts, running=instances({"h1": "O1 O1", "h2": "O2"}))
    before = (plan.decision(why()), dict(plan.free), list(plan.hosts), plan.on_host("h1"))
    trial = plan.copy()
    trial.stop(trial.serving("O1")[0], why("spare"))
    trial.migrate(trial.serving("O2")[0], "h1", why("needed"))
    trial.start("O3", "h1", why("needed"))
    trial.lease(why("needed"))
    trial.prolong(trial.hosts[0], why("kept"))
    trial.release(trial.hosts[-1], why("empty"))
    assert (plan.decision(why()), dict(plan.free), plan.hosts, plan.on_host("h1")) == before
    assert [plan.count(name) for name in ("O1", "O2", "O3")] == [2, 1, 0]
    assert not plan.is_given_work("h1")
    assert [trial.count(name) for name in ("O1", "O2", "O3")] == [1, 1, 1]
