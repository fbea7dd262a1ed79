"""Servers that are machines: Debian's kernel and Docker's engine under Nova's libvirt driver.

After each there is no server, port, address, domain, QEMU process, tap or folder (conftest).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import pytest

from include.model.errors import TestbedNotReady
from include.testbeds.live.engine import Engine
from tests.live.world import crowding, wait_until
from tests.openstack.plane import (
    FLAVOR,
    OPENSTACK,
    Plane,
    cloud_run,
    hosts_of,
    hypervisor,
    wait_for_engine,
    wait_for_failure,
)

pytestmark = [pytest.mark.openstack, pytest.mark.guests]

EMULATED = {"boot_within_s": 240, "start_within_s": 300, "silent_for_s": 20, "heartbeat_s": 10}
BOOT_WITHIN_S, GONE_WITHIN_S = 150, 60


@pytest.fixture(autouse=True)
def _real_guests(plane: Plane) -> None:
    if hypervisor() == "stand-in":
        pytest.skip("servers are stand-ins here; make test-guests brings up real ones")


def of_guests(cloud: Plane) -> dict[str, list[str]]:
    """Domains, processes, taps and folders of guests."""
    names = defaultdict(list)
    for line in cloud.held()["guests"]:
        kind, name = line.split()
        names[kind].append(name)
    return names


def cut_power(pid: str) -> None:
    """End the QEMU of a guest as a power cut would."""
    assert b"qemu-system" in Path(f"/proc/{pid}/cmdline").read_bytes()
    os.kill(int(pid), signal.SIGKILL)


def console(cloud: Plane, host: str) -> str:
    """What a guest has printed."""
    return cloud.user.compute.get_server_console_output(host)["output"]


def test_from_the_order_to_an_engine_that_trusts_the_registry(cloud, images):
    image = json.loads(Path(images).read_text())["images"]["operator"]
    with hosts_of(**_boot()) as hosts:
        host = hosts.lease(FLAVOR)
        print(f"engine after {wait_for_engine(hosts, host, BOOT_WITHIN_S):.1f} s")
        held = of_guests(cloud)
        assert {kind: len(names) for kind, names in held.items()} == {
            "domain": 1, "process": 1, "tap": 1, "folder": 1
        }  # fmt: skip
        assert held["folder"] == [host]
        output = console(cloud, host)
        assert "user data executed" in output
        assert "ended with" not in output, "every command of the user data succeeded"
        engine = Engine(hosts.endpoint(host))
        began_s = time.monotonic()
        engine.pull(image)
        print(f"image pulled in {time.monotonic() - began_s:.1f} s")
        assert engine.has_image(image)
        began_s = time.monotonic()
        hosts.give_back(host)
        print(f"gone after {time.monotonic() - began_s:.1f} s")


def test_three_side_by_side(cloud):
    with hosts_of(**_boot()) as hosts:
        began_s = time.monotonic()
        leased = [hosts.lease(FLAVOR) for _ in range(3)]
        for host in leased:
            wait_for_engine(hosts, host, BOOT_WITHIN_S)
        print(f"three engines after {time.monotonic() - began_s:.1f} s")
        assert len({hosts.endpoint(host) for host in leased}) == 3
        assert len(of_guests(cloud)["process"]) == 3


@pytest.mark.parametrize("fail", ["hang", "deaf"])
def test_a_boot_that_comes_to_nothing_is_never_taken_for_a_host(cloud, fail):
    cloud.fault(machine=[{"match": ".*", "fail": fail}])
    with hosts_of(**_boot()) as hosts:
        host = hosts.lease(FLAVOR)
        wait_until(lambda: cloud.user.compute.get_server(host).status == "ACTIVE", "it is ACTIVE")
        if fail == "deaf":
            wait_until(
                lambda: "the engine answers" in console(cloud, host), "its engine is up", 120
            )
            assert "address set" not in console(cloud, host)
        else:
            time.sleep(30)
            assert "tidebench" not in console(cloud, host)
        assert hosts.endpoint(host) == ""


def test_a_host_whose_boot_hangs_is_given_back_by_the_run_when_its_time_is_up(cloud, images):
    cloud.fault(machine=[{"match": ".*", "fail": "hang"}])
    within = EMULATED | {"boot_within_s": 25 * crowding()}
    late = pytest.raises(TestbedNotReady, match=r"not up within \d[\d.]* s: host-1; see")
    with cloud_run(**within) as live, late:
        live.deploy()
    cloud.assert_nothing_left()


def test_a_guest_that_powers_itself_off_will_not_come_up(cloud):
    cloud.fault(machine=[{"match": ".*", "fail": "off"}])
    with hosts_of(**_boot()) as hosts:
        host = hosts.lease(FLAVOR)
        assert "SHUTOFF" in wait_for_failure(hosts, host, 90)


def test_libvirtd_is_killed_and_started_again_guests_go_on_and_new_ones_come(cloud):
    with hosts_of(**_boot()) as hosts:
        host = hosts.lease(FLAVOR)
        wait_for_engine(hosts, host, BOOT_WITHIN_S)
        (pid,) = of_guests(cloud)["process"]
        kill(cloud, "libvirtd")
        assert Engine(hosts.endpoint(host)).answers(), "a guest needs no libvirtd"
        cloud.start("libvirtd")
        assert of_guests(cloud)["process"] == [pid]
        second = hosts.lease(FLAVOR)
        wait_for_engine(hosts, second, BOOT_WITHIN_S)
        hosts.give_back(host)
        assert hosts.leased() == [second]


def test_nova_compute_is_killed_while_it_spawns_and_what_it_has_left_goes(cloud):
    with hosts_of(gone_within_s=GONE_WITHIN_S * crowding()) as hosts:
        host = hosts.lease(FLAVOR)
        wait_until(lambda: of_guests(cloud)["folder"], "it is at work on the guest", 30)
        kill(cloud, "nova-compute")
        cloud.start("nova-compute")
        hosts.give_back(host)
        assert hosts.leased() == []


def test_ten_orders_and_deletions_in_a_row_leave_nothing(cloud):
    for _ in range(10):
        with hosts_of(gone_within_s=GONE_WITHIN_S * crowding()) as hosts:
            host = hosts.lease(FLAVOR)
            wait_until(
                lambda: cloud.user.compute.get_server(host).status == "ACTIVE",  # noqa: B023
                "it is ACTIVE",
                60,
            )
            hosts.give_back(host)
        cloud.assert_nothing_left()


def test_a_guest_that_loses_its_power_is_replaced_and_no_item_is_lost(cloud, images):
    with cloud_run(**EMULATED) as live:
        live.deploy(hosts_wanted=2)
        live.testbed.advance_to(20)
        before = set(of_guests(cloud)["process"])
        assert len(before) == 2
        victim = live.testbed._state.fleet.host("host-2").id
        (pid,) = [
            number for number in before if victim in Path(f"/proc/{number}/cmdline").read_text()
        ]
        cut_power(pid)
        live.advance_until_event("host_lost", 120)
        wait_until(lambda: victim not in live.testbed._state.hosts.leased(), "its server is gone")
        live.assert_nothing_lost()


def kill(cloud: Plane, service: str) -> None:
    """SIGKILL to a service of the control plane, which is started again when the test is over."""
    cloud._down.add(service)
    asked = subprocess.run([OPENSTACK, "status"], capture_output=True, text=True, check=False)
    lines = asked.stdout.splitlines()
    (pid,) = [line.split()[2] for line in lines if line.split()[0] == service]
    os.kill(int(pid), signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), f"{service} ends")


def _is_zombie(pid: str) -> bool:
    return ") Z" in Path(f"/proc/{pid}/stat").read_text()


def _boot() -> dict[str, float]:
    return {"boot_within_s": BOOT_WITHIN_S * crowding()}
