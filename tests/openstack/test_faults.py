"""What goes wrong in a cloud, on demand: and afterwards nothing is left."""

from __future__ import annotations

import time

import pytest

from include.model.errors import TestbedError, TestbedNotReady
from tests.live.world import crowding, wait_until
from tests.openstack.plane import FLAVOR, hosts_of, wait_for_engine, wait_for_failure

pytestmark = pytest.mark.openstack

ORDERS = "POST .*/servers$"


@pytest.mark.parametrize("fail", ["abort", "retry", "crash"])
def test_a_boot_that_ends_in_an_error_says_why_and_is_given_back(cloud, fail):
    cloud.fault(spawn=[{"match": ".*", "fail": fail}])
    with hosts_of() as hosts:
        host = hosts.lease(FLAVOR)
        reason = wait_for_failure(hosts, host)
        assert reason.startswith("its server is in ERROR: ")
        assert len(reason) > len("its server is in ERROR: ")
        hosts.give_back(host)
        assert hosts.leased() == []


def test_a_slow_boot_is_no_failure(cloud):
    cloud.fault(spawn=[{"match": ".*", "delay": 8}], machine=[{"match": ".*", "delay": 4}])
    with hosts_of() as hosts:
        host = hosts.lease(FLAVOR)
        took_s = wait_for_engine(hosts, host)
        assert took_s > 10


def test_a_deletion_that_fails_is_asked_for_again(cloud):
    with hosts_of() as hosts:
        host = hosts.lease(FLAVOR)
        wait_until(lambda: cloud.user.compute.get_server(host).status == "ACTIVE", "it is up")
        cloud.fault(destroy=[{"match": ".*", "fail": "crash", "times": 1}])
        hosts.give_back(host)
        assert hosts.leased() == []


@pytest.mark.parametrize(
    ("status", "more"), [(503, {}), (429, {"retry_after": 1}), (409, {}), (500, {})]
)
def test_an_api_that_refuses_for_a_while_is_asked_again(cloud, status, more):
    rule = {"match": ORDERS, "status": status, "times": 2, **more}
    listing = {"match": "GET .*/servers/detail", "status": status, "times": 2, **more}
    cloud.fault(nova=[rule, listing])
    with hosts_of() as hosts:
        began_s = time.monotonic()
        host = hosts.lease(FLAVOR)
        assert time.monotonic() - began_s > 1, "it backed off"
        assert hosts.leased() == [host]
        cloud.fault(nova=[{"match": "DELETE .*/servers", "status": status, "times": 2, **more}])
        hosts.give_back(host)
        assert hosts.leased() == []


@pytest.mark.parametrize("more", [{"status": 503}, {"status": 429, "retry_after": 3600}])
def test_an_api_that_goes_on_refusing_is_given_up_within_the_deadline(cloud, more):
    cloud.fault(nova=[{"match": ORDERS, **more}])
    with hosts_of(order_within_s=5) as hosts:
        began_s = time.monotonic()
        with pytest.raises(TestbedNotReady, match="create a server"):
            hosts.lease(FLAVOR)
        assert time.monotonic() - began_s < 15 * crowding()
        assert hosts.leased() == []


def test_a_server_whose_answer_got_lost_is_found_and_not_ordered_twice(cloud):
    cloud.fault(nova=[{"match": ORDERS, "late": 6, "times": 1}])
    with hosts_of(answer_within_s=3, order_within_s=60) as hosts:
        host = hosts.lease(FLAVOR)
        assert hosts.leased() == [host]
        wait_for_engine(hosts, host)
        assert hosts.leased() == [host]


def look_for(hosts, seconds):
    """As a run does while it lasts: what comes of orders that were given up is removed."""
    end_s = time.monotonic() + seconds * crowding()
    while time.monotonic() < end_s:
        hosts.usage("any")
        time.sleep(0.5)


def test_what_a_given_up_order_brings_forth_later_is_deleted(cloud):
    with hosts_of(answer_within_s=2, order_within_s=4) as hosts:
        hosts.check(FLAVOR, 1)
        cloud.fault(nova=[{"match": ORDERS, "delay": 12}])
        with pytest.raises(TestbedNotReady):
            hosts.lease(FLAVOR)
        wait_until(hosts.leased, "it comes all the same")
        look_for(hosts, 15)  # it was asked for twice
        assert hosts.leased() == []


def test_an_api_that_hangs_holds_nobody_up(cloud):
    with hosts_of(answer_within_s=2, order_within_s=4) as hosts:
        host = hosts.lease(FLAVOR)
        cloud.freeze("nova")
        began_s = time.monotonic()
        assert (hosts.endpoint(host), hosts.boot_failed(host)) == ("", "")
        assert time.monotonic() - began_s < 0.5, "who looks after a run never waits for the cloud"
        with pytest.raises(TestbedNotReady):
            hosts.lease(FLAVOR)
        assert time.monotonic() - began_s < 20 * crowding()
        cloud.thaw("nova")
        wait_for_engine(hosts, host)
        look_for(hosts, 10)
        assert hosts.leased() == [host]


def test_without_a_compute_host_a_server_neither_boots_nor_goes_until_it_is_back(cloud):
    with hosts_of(gone_within_s=3) as hosts:
        host = hosts.lease(FLAVOR)
        wait_for_engine(hosts, host)
        cloud.stop("nova-compute")
        other = hosts.lease(FLAVOR)
        wait_until(lambda: hosts._poller.latest().servers.get(other), "it is seen")
        time.sleep(3)
        assert (hosts.endpoint(other), hosts.boot_failed(other)) == ("", "")
        with pytest.raises(TestbedError, match="not gone within 3 s"):
            hosts.give_back(host)
        assert host in hosts.leased(), "it is not forgotten"
        cloud.start("nova-compute")
        with hosts_of(hosts._tags.run) as others:  # whoever comes next
            for stray in others.leased():
                others.give_back(stray)
            assert others.leased() == []


def test_ports_that_neutron_could_not_free_do_not_stay(cloud):
    with hosts_of() as hosts:
        host = hosts.lease(FLAVOR)
        wait_for_engine(hosts, host)
        cloud.fault(neutron=[{"match": "(DELETE|PUT) .*/ports/", "status": 500, "times": 3}])
        hosts.give_back(host)
        assert list(cloud.user.network.ports(device_id=host)) == []
