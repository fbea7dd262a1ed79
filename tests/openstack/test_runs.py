"""The testbed `openstack`: real leases from Nova, real engines, containers and queues."""

from __future__ import annotations

import time

import pytest

from include.model.decision import LeaseHost, MigrateInstance, ReleaseHost, StartInstance
from include.model.errors import CapacityExhausted, SpecError
from include.testbeds.live.files import run_folder
from tests.live.live_run import FRONT, crowding
from tests.live.world import script, wait_until
from tests.openstack.plane import FLAVOR, MACHINE, cloud_run

pytestmark = [pytest.mark.openstack, pytest.mark.usefixtures("images")]


def test_a_host_is_leased_used_and_released_while_the_run_goes_on(cloud):
    with cloud_run() as live:
        live.deploy()
        live.testbed.advance_to(5)
        leased, cold = live.apply(LeaseHost(FLAVOR.name, "new"), StartInstance(FRONT, "new"))
        fleet = live.testbed._state.fleet
        instance = fleet.instance(cold.subject)
        assert live.testbed.observe().hosts[leased.subject].ordered_s <= instance.started_s
        live.advance_until(lambda: instance.first_item_s is not None, 90)
        ordered_s = fleet.host(leased.subject).ordered_s
        cold_s = instance.first_item_s - ordered_s
        print(f"lease order to first item, cold: {cold_s:.1f} s, of which "
              f"{instance.pull_s:.1f} s for its image")  # fmt: skip
        (cached,) = live.apply(StartInstance(FRONT, leased.subject))
        again = fleet.instance(cached.subject)
        live.advance_until(lambda: again.first_item_s is not None, 30)
        print(f"cached on that host: {again.first_item_s - again.started_s:.1f} s")

        server = fleet.host(leased.subject).id
        live.apply(
            MigrateInstance(cold.subject, "host-1"),
            MigrateInstance(cached.subject, "host-1"),
            ReleaseHost(leased.subject),
        )
        live.advance_until(lambda: leased.subject not in live.testbed.observe().hosts, 60)
        wait_until(
            lambda: server not in {entry.id for entry in cloud.user.compute.servers()}, "it is gone"
        )
        assert "instance_crash" not in live.events()
        live.assert_nothing_lost()


def test_a_server_that_never_answers_is_given_back_when_its_time_is_up(cloud):
    with cloud_run(boot_within_s=12 * crowding()) as live:
        live.deploy()
        cloud.fault(machine=[{"match": ".*", "fail": "dead"}])
        live.apply(LeaseHost(FLAVOR.name, "dead"), StartInstance(FRONT, "dead"))
        live.advance_until_event("host_boot_failure", 90)
        wait_until(lambda: len(list(cloud.user.compute.servers())) == 1, "its server is gone")
        leases = live.testbed.leases()
        assert leases["released"] == [False, True]
        assert leases["ended_s"][1] > leases["ordered_s"][1] + 5, "billed from the order"


def test_a_lease_that_the_cloud_refuses_is_refused_with_its_reason_and_the_run_goes_on(cloud):
    with cloud_run(order_within_s=3) as live:
        live.deploy()
        cloud.fault(nova=[{"match": "POST .*/servers$", "status": 503}])
        (outcome,) = live.testbed.apply(_lease())
        assert not outcome.accepted
        assert "create a server" in outcome.detail
        cloud.fault()
        cloud.quota(instances=1)
        (outcome,) = live.testbed.apply(_lease())
        assert "exceed the quota" in outcome.detail
        live.advance_until(lambda: live.testbed.observe().operators, 60)


def test_what_cannot_be_leased_is_known_before_anything_is_touched(cloud):
    cloud.quota(instances=0)
    with cloud_run() as live:
        with pytest.raises(CapacityExhausted, match="exceed the quota"):
            live.deploy()
        assert not run_folder(live.run).exists()
    with cloud_run(image="none") as live:
        with pytest.raises(SpecError, match="unknown image"):
            live.deploy()
        assert not run_folder(live.run).exists()


def test_a_machine_that_loses_its_power_is_lost_and_its_server_given_back(cloud):
    with cloud_run() as live:
        live.deploy(hosts_wanted=2)
        server = live.testbed._state.fleet.host("host-2").id
        machines = dict(line.split()[::-1] for line in script(MACHINE, "list").splitlines())
        script(MACHINE.parents[1] / "live" / "hosts.sh", "crash", machines[server])
        began_s = time.monotonic()
        live.advance_until_event("host_lost", 60)
        print(f"noticed after {time.monotonic() - began_s:.1f} s")
        wait_until(lambda: server not in live.testbed._state.hosts.leased(), "its server is gone")
        live.assert_nothing_lost()


def _lease():
    from include.testing.builders import decision

    return decision(LeaseHost(FLAVOR.name, "more"))
