"""Runs whose processes were killed at any step, and that the reaper leaves nothing of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid

import pytest

from include.testbeds.live.files import HEARTBEAT, run_folder
from include.testbeds.live.hosts.openstack.reap import find
from include.testbeds.live.hosts.openstack.tags import TAG, ResourceTags, site
from include.testbeds.reap import reap
from tests.live.world import REPOSITORY, crowding, script, wait_until
from tests.openstack.plane import FLAVOR, MACHINE, hosts_of, wait_for_engine

pytestmark = pytest.mark.openstack


def reap_all(*, remove: bool, after_s: float = 0.0) -> str:
    lines: list[str] = []
    reap(remove=remove, after_s=after_s, testbeds=["openstack"], say=lines.append)
    return "\n".join(lines)


@pytest.mark.parametrize("step", ["ordering", "ordered", "booting", "booted", "deployed"])
def test_what_a_provisioning_process_leaves_that_is_killed_is_reaped(cloud, images, step, tmp_path):
    run = f"test-{uuid.uuid4().hex[:8]}"
    slow = {"ordering": {"nova": [{"match": "POST .*/servers$", "delay": 5}]},
            "ordered": {"spawn": [{"match": ".*", "delay": 15}]},
            "booting": {"machine": [{"match": ".*", "delay": 15}]}}  # fmt: skip
    cloud.fault(**slow.get(step, {}))
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.openstack.provisioning", run],
            cwd=REPOSITORY, stdout=log, stderr=log,
        )  # fmt: skip

    def there() -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()
        held = cloud.held()
        match step:
            case "ordering":
                return run_folder(run).is_dir()
            case "ordered":
                return any("BUILD" in server for server in held["servers"])
            case "booting":
                return any("ACTIVE" in server for server in held["servers"])
            case "booted":
                guests = [process for process in held["guests"] if process.startswith("process ")]
                return len(held["machines"]) + len(guests) == 2
            case _:
                return "deployed" in (tmp_path / "log").read_text()

    wait_until(there, step, 120 * crowding())
    if step == "ordering":
        time.sleep(2)  # the request is under way
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    if step == "ordering":
        wait_until(lambda: cloud.held()["servers"], "it comes all the same", 60)
    cloud.fault()
    assert f"{run}: alive" in reap_all(remove=False, after_s=3600)
    assert f"{run}: dead" in reap_all(remove=False)
    assert cloud.held()["servers"], "without remove it only lists"
    assert f"{run}: given back" in reap_all(remove=True)
    assert run not in {held.run for held in find()}
    assert not run_folder(run).exists()
    cloud.assert_nothing_left()


def test_another_installations_run_is_left_alone_until_it_is_due(cloud):
    with hosts_of("theirs") as hosts:
        hosts._tags = ResourceTags("theirs", "elsewhere", time.time() + 3600)
        host = hosts.lease(FLAVOR)
        wait_for_engine(hosts, host)  # before that Nova changes no metadata
        assert "theirs@elsewhere: alive" in reap_all(remove=True)
        assert hosts.leased() == [host]
        cloud.user.compute.set_server_metadata(host, **{f"{TAG}.due": str(time.time() - 100)})
        assert "theirs@elsewhere: alive" in reap_all(remove=True, after_s=3600)
        assert "theirs@elsewhere: given back" in reap_all(remove=True, after_s=60)
        assert hosts.leased() == []


def test_ports_and_addresses_with_the_marks_of_a_dead_run_go_too(cloud):
    network = cloud.user.network
    tags = ResourceTags("dead-run", site())
    port = network.create_port(network_id=network.find_network("tidebench").id)
    address = network.create_ip(floating_network_id=network.find_network("public").id)
    somebodys = network.create_port(network_id=network.find_network("tidebench").id)
    for resource in (port, address):
        network.set_tags(resource, tags.tags)
    try:
        output = reap_all(remove=True)
        assert f"port {port.id}" in output
        assert f"floating address {address.id}" in output
        assert [port.id for port in network.ports()] == [somebodys.id]
        assert list(network.ips()) == []
    finally:
        network.delete_port(somebodys)


def test_a_run_that_is_looked_after_is_left_alone(cloud):
    with hosts_of("looked-after") as hosts:
        folder = run_folder("looked-after")
        folder.mkdir(parents=True)
        (folder / "origin.json").write_text('{"testbed": "openstack", "cloud": ""}')
        (folder / HEARTBEAT).touch()
        host = hosts.lease(FLAVOR)
        assert "looked-after: alive" in reap_all(remove=True, after_s=60)
        assert hosts.leased() == [host]
        os.utime(folder / HEARTBEAT, (time.time() - 61,) * 2)
        assert "looked-after: given back" in reap_all(remove=True, after_s=60)
        assert hosts.leased() == []
        assert script(MACHINE, "list") == ""
