"""The control plane of `infra/openstack`, for tests: harmed, healed, and asked what it holds."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import openstack

from include.testbeds.flavors import FLAVORS
from include.testbeds.live.hosts.openstack.calibration import OpenStackCalibration
from include.testbeds.live.hosts.openstack.hosts import OpenStackHosts
from include.testbeds.live.hosts.openstack.tags import ResourceTags, site
from tests.live.live_run import live_run
from tests.live.world import crowding, script, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
OPENSTACK = REPOSITORY / "infra" / "openstack" / "openstack.sh"
MACHINE = OPENSTACK.with_name("machine.sh")
FLAVOR = FLAVORS["live-half-cpu-1gb"]
SMALL = {"rate": 10.0, "flavor": FLAVOR, "cpu_cores": 0.1}
"""A run on servers of that flavor."""
cloud_run = partial(live_run, kind="openstack", **SMALL)


def is_up() -> bool:
    """Whether all of it runs."""
    return subprocess.run([OPENSTACK, "status"], capture_output=True, check=False).returncode == 0


def client_settings() -> dict[str, str]:
    """The environment of a client of the project."""
    return dict(line.split("=", 1) for line in script(OPENSTACK, "env").split())


def hypervisor() -> str:
    """What servers are in the control plane that is up, or was last."""
    return script(OPENSTACK, "hypervisor").strip()


class Plane:
    """Its faults, and an administrator's view."""

    def __init__(self) -> None:
        self._limited = True  # perhaps, by a test before that was killed
        self._down: set[str] = set()
        self._frozen: set[str] = set()

    @cached_property
    def user(self) -> Any:
        """A client of the project."""
        return openstack.connect()

    def fault(self, **rules: list[dict[str, Any]]) -> None:
        """Have it fail as lib/tb_openstack/faults.py says."""
        script(OPENSTACK, "fault", json.dumps(rules))

    def quota(self, **limits: int) -> None:
        """Limit the project."""
        self._limited = True
        script(OPENSTACK, "quota", *(f"{name}={value}" for name, value in limits.items()))

    def stop(self, service: str) -> None:
        self._down.add(service)
        script(OPENSTACK, "stop", service)

    def start(self, service: str) -> None:
        script(OPENSTACK, "start", service)
        self._down.discard(service)

    def freeze(self, service: str) -> None:
        self._frozen.add(service)
        script(OPENSTACK, "freeze", service)

    def thaw(self, service: str) -> None:
        script(OPENSTACK, "thaw", service)
        self._frozen.discard(service)

    def heal(self) -> None:
        """No faults, everything up, the usual limits."""
        script(OPENSTACK, "fault", "none")
        for service in sorted(self._frozen):
            self.thaw(service)
        for service in sorted(self._down):
            self.start(service)
        if self._limited:
            script(OPENSTACK, "quota", "default")
            self._limited = False

    def held(self) -> dict[str, list[str]]:
        """What the project holds: servers, ports, addresses, and what they are on this machine."""
        return {
            "servers": [f"{server.name} {server.status}" for server in self.user.compute.servers()],
            "ports": [port.id for port in self.user.network.ports()],
            "addresses": [address.id for address in self.user.network.ips()],
            "machines": script(MACHINE, "list").split("\n")[:-1],
            "guests": script(OPENSTACK, "guests").split("\n")[:-1],
        }

    def assert_nothing_left(self) -> None:
        """Nova takes a moment to forget what is gone."""
        wait_until(lambda: not any(self.held().values()), "nothing is left", 30)

    def close(self) -> None:
        self.user.close()


def settings(**changes: Any) -> OpenStackCalibration:
    return OpenStackCalibration(**changes)


@contextmanager
def hosts_of(run: str = "", **changes: Any) -> Iterator[OpenStackHosts]:
    """The hosts of a run of its own, all given back afterwards."""
    tags = ResourceTags(run or f"test-{uuid.uuid4().hex[:8]}", site(), time.time() + 3600)
    made = OpenStackHosts(tags, settings(**changes))
    try:
        yield made
    finally:
        for host in made.leased():
            made.give_back(host)
        made.close()


def wait_for_engine(hosts: OpenStackHosts, host: str, give_up_s: float = 90) -> float:
    """Until a host is up; returns how long it took. Fails when it will not come up."""
    began_s = time.monotonic()

    def up() -> str:
        assert not (reason := hosts.boot_failed(host)), reason
        return hosts.endpoint(host)

    wait_until(up, "the host is up", give_up_s * crowding())
    return time.monotonic() - began_s


def wait_for_failure(hosts: OpenStackHosts, host: str, give_up_s: float = 60) -> str:
    """Until a host will not come up; returns why."""
    reason: str = wait_until(lambda: hosts.boot_failed(host), "it fails", give_up_s * crowding())
    return reason
