"""Instances and hosts of a replay: when changes take effect, what is paid, what is seen."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from include.advise.cluster import OPERATOR, ReplayCluster
from include.model.decision import (
    Action,
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.testing.builders import decision

BTU_S, TAKES_S = 3600.0, 15.0


def new_host(handle: str, instances: int = 1) -> list[Action]:
    return [LeaseHost("host", handle), *([StartInstance(OPERATOR, handle)] * instances)]


def cluster(max_hosts: int = 10, max_instances: int = 10) -> ReplayCluster:
    return ReplayCluster("host", BTU_S, TAKES_S, max_hosts, max_instances)


def one_instance() -> tuple[ReplayCluster, str, str]:
    """A cluster, its host and its instance, begun at 0 s."""
    made = cluster()
    made.apply(decision(*new_host("new-1")), 0)
    return made, *hosts(made), *instances(made)


def hosts(of: ReplayCluster) -> list[str]:
    return [host.name for host in of.fleet.leased()]


def instances(of: ReplayCluster) -> list[str]:
    return [instance.name for instance in of.fleet.instances.values()]


def test_what_starts_works_after_it_takes_effect() -> None:
    made, _, _ = one_instance()
    (lease,) = made.leases
    assert [made.running(now_s) for now_s in (0, 14.9, 15, 100)] == [0, 0, 1, 1]
    assert lease.ordered_s == 0
    assert lease.paid_until_s == BTU_S


def test_what_stops_works_until_it_takes_effect() -> None:
    made, _, instance = one_instance()
    made.apply(decision(StopInstance(instance)), 100)
    made.apply(decision(StopInstance(instance)), 110)  # again: the first one counts
    made.settle(114)
    assert made.running(114) == 1
    assert made.instance_samples(114, 0.5, 50)[instance].stopping
    made.settle(115)
    assert made.running(115) == 0
    assert made.instance_samples(115, 0.5, 50) == {}


def test_a_released_host_ends_when_it_is_empty() -> None:
    made, host, instance = one_instance()
    made.apply(decision(ReleaseHost(host)), 50)
    made.settle(60)
    assert hosts(made) == [host]
    assert made.host_samples()[host].releasing
    made.apply(decision(StopInstance(instance)), 100)
    made.settle(115)
    assert hosts(made) == []
    assert made.host_samples() == {}
    made.settle(10_000)
    assert made.leases[0].ends_s == 115
    assert made.leases[0].paid_until_s == BTU_S  # nothing is paid after its end


def test_an_empty_host_is_held_until_it_is_released() -> None:
    made, host, instance = one_instance()
    made.apply(decision(StopInstance(instance)), 0)
    made.settle(1000)
    assert hosts(made) == [host]
    made.apply(decision(ReleaseHost(host)), 1000)
    made.settle(1010)
    assert made.leases[0].ends_s == 1010


def test_leases_go_on_and_prolonging_pays_one_btu() -> None:
    made, host, _ = one_instance()
    made.apply(decision(ProlongLease(host)), 3000)
    assert made.leases[0].paid_until_s == 2 * BTU_S
    made.settle(3600)
    assert made.leases[0].paid_until_s == 2 * BTU_S
    made.settle(7200)
    assert made.leases[0].paid_until_s == 3 * BTU_S
    assert math.isinf(made.leases[0].ends_s)


def test_a_migration_starts_a_copy_and_stops_the_instance() -> None:
    made, _, instance = one_instance()
    move = MigrateInstance(instance, "new-1")
    made.apply(decision(LeaseHost("host", "new-1"), move), 100)
    assert [made.running(now_s) for now_s in (100, 114)] == [1, 1]
    made.settle(115)
    assert made.running(115) == 1
    (left,) = made.instance_samples(115, None, 0).values()
    assert left.host != "host-1"


def test_instances_beyond_the_most_are_left_out_but_one_may_move() -> None:
    made = cluster(max_instances=2)
    made.apply(decision(*new_host("new-1", instances=3)), 0)
    assert made.running(15) == 2
    moved = instances(made)[0]
    made.apply(decision(LeaseHost("host", "new-1"), MigrateInstance(moved, "new-1")), 20)
    made.settle(35)
    assert made.running(35) == 2
    assert moved not in instances(made)


def test_without_a_host_for_its_copy_an_instance_goes_on() -> None:
    made, _, instance = one_instance()
    made.apply(decision(MigrateInstance(instance, "host-9")), 100)
    made.settle(115)
    assert made.running(115) == 1


def test_cpu_is_that_of_instances_that_work_and_ready_are_those_that_it_covers() -> None:
    made, _, instance = one_instance()  # works from 15 s on

    def seen(now_s: float, readable_since_s: float) -> tuple[bool, float | None]:
        one = made.instance_samples(now_s, 0.7, readable_since_s)[instance]
        return one.ready, one.cpu_share

    assert seen(10, -50) == (False, None)
    assert seen(30, -30) == (False, 0.7)
    assert seen(75, 14) == (False, 0.7)  # a part of the reading is from before it worked
    assert seen(75, 15) == (True, 0.7)


@given(counts=st.lists(st.integers(0, 8), min_size=1, max_size=20), max_hosts=st.integers(1, 6))
def test_there_are_never_more_than_may_be_and_what_stopped_is_gone(
    counts: list[int], max_hosts: int
) -> None:
    made = cluster(max_hosts)
    for turn, count in enumerate(counts):
        now_s = 60.0 * turn
        made.settle(now_s)
        stop = [StopInstance(name) for name in instances(made)]
        release = [ReleaseHost(name) for name in hosts(made)]
        made.apply(decision(*stop, *release), now_s)
        made.settle(now_s + TAKES_S)
        assert hosts(made) == []
        wanted = [action for i in range(count) for action in new_host(f"new-{i}")]
        made.apply(decision(*wanted), now_s + TAKES_S)
        assert len(hosts(made)) == min(count, max_hosts)
        assert made.running(now_s + 2 * TAKES_S) == min(count, max_hosts)
    for lease in made.leases:
        assert lease.paid_until_s >= min(lease.ends_s, lease.ordered_s + BTU_S)
