"""Servers as hosts, on a real control plane: leased, marked, limited, given back."""

from __future__ import annotations

import time

import pytest

from include.model.errors import CapacityExhausted, SpecError
from include.testbeds.flavors import FLAVORS
from include.testbeds.live.engine import Engine
from include.testbeds.live.hosts.openstack.tags import TAG, site
from tests.live.world import wait_until
from tests.openstack.plane import FLAVOR, hosts_of, wait_for_engine

pytestmark = pytest.mark.openstack


def test_a_lease_is_a_server_with_the_marks_of_its_run_and_goes_without_a_trace(cloud):
    with hosts_of("a-run") as hosts:
        hosts.check(FLAVOR, 1)
        host = hosts.lease(FLAVOR)
        assert hosts.endpoint(host) == ""
        assert hosts.boot_failed(host) == ""
        took_s = wait_for_engine(hosts, host)
        print(f"engine answers {took_s:.1f} s after the order")
        assert Engine(hosts.endpoint(host)).containers("a-run") == {}
        server = cloud.user.compute.get_server(host)
        tags = {TAG, "run-a-run", f"site-{site()}"}
        assert set(server.tags) == tags
        assert server.metadata[f"{TAG}.run"] == "a-run"
        assert float(server.metadata[f"{TAG}.due"]) > time.time()
        # Ports get theirs in the background, once the server is up.
        network = cloud.user.network
        wait_until(lambda: all(set(p.tags) == tags for p in network.ports(device_id=host)), "tags")
        (port,) = network.ports(device_id=host)
        assert set(port.tags) == tags
        assert port.fixed_ips[0]["ip_address"] in hosts.endpoint(host)
        assert hosts.leased() == [host]
        with hosts_of("another-run") as others:
            assert others.leased() == []

        hosts.give_back(host)
        hosts.give_back(host)
        assert hosts.leased() == []


def test_the_quota_is_read_before_anything_is_ordered(cloud):
    cloud.quota(instances=2, cores=1)
    with hosts_of() as hosts:
        with pytest.raises(CapacityExhausted, match="3 servers of 2 that are left of 2") as error:
            hosts.check(FLAVOR, 3)
        assert "3 cores of 1" in str(error.value)
        host = hosts.lease(FLAVOR)
        with pytest.raises(CapacityExhausted, match="cores"):
            hosts.lease(FLAVOR)
        hosts.check(FLAVOR, 1)  # its own is given back before
        assert hosts.leased() == [host]


def test_a_limit_that_only_the_order_meets_is_one_too(cloud):
    cloud.quota(port=0)
    with hosts_of() as hosts:
        began_s = time.monotonic()
        with pytest.raises(CapacityExhausted, match="ports"):
            hosts.lease(FLAVOR)
        assert time.monotonic() - began_s < 20, "it is not tried again"
    cloud.quota(instances=-1, cores=-1, ram=-1)
    with hosts_of() as hosts:
        hosts.check(FLAVOR, 10_000)


def test_everything_that_is_wrong_with_the_names_is_said_at_once(cloud):
    wrong = {
        "image": "tidebench-hots",
        "networks": ("tidebench", "elsewhere"),
        "flavors": {FLAVOR.name: "none"},
        "key_pair": "mine",
        "security_groups": ("open",),
        "availability_zone": "moon",
    }
    with hosts_of(**wrong) as hosts:
        with pytest.raises(SpecError) as error:
            hosts.check(FLAVOR, 1)
        assert len(error.value.problems) == len(wrong)
        assert "Did you mean 'tidebench-host'?" in str(error.value)
        assert "unknown network 'elsewhere'" in str(error.value)
        with pytest.raises(SpecError):
            hosts.lease(FLAVOR)
    larger = FLAVORS["docker-4cpu-7gb"]
    too_small = pytest.raises(SpecError, match="less than the 4 cores")
    with hosts_of(flavors={larger.name: FLAVOR.name}) as hosts, too_small:
        hosts.check(larger, 1)


def test_a_server_that_somebody_deletes_while_it_boots_is_missed(cloud):
    cloud.fault(machine=[{"match": ".*", "delay": 30}])
    with hosts_of() as hosts:
        host = hosts.lease(FLAVOR)
        wait_until(lambda: hosts._poller.latest().servers.get(host), "it is seen")
        cloud.user.compute.delete_server(host)
        assert wait_until(lambda: hosts.boot_failed(host), "it is missed") == "its server is gone"
