"""Docker hosts of this machine as a host provider."""

from __future__ import annotations

from typing import Any

from include.model.host import HostFlavor
from include.testbeds.live.hosts.local import cgroups, leases
from include.testbeds.live.hosts.provider import Usage


class LocalHosts:
    """The Docker hosts of one run on this machine; see ``HostProvider``."""

    def __init__(self, run: str) -> None:
        self._run = run

    def check(self, flavor: HostFlavor, hosts: int) -> None:
        """Nothing is reserved for anyone, so there is nothing to ask."""

    def origin(self) -> dict[str, Any]:
        """The files of the leases say everything."""
        return {"testbed": "docker"}

    def lease(self, flavor: HostFlavor) -> str:
        """Take a free number and boot a host."""
        return str(leases.lease(self._run, flavor).id)

    def leased(self) -> list[str]:
        """Ids by the leases' files."""
        return [str(one.id) for one in leases.leases_of(self._run)]

    def endpoint(self, host: str) -> str:
        """As its boot has said."""
        return leases.endpoint(int(host))

    def boot_failed(self, host: str) -> str:
        """As its boot has said, or that it has ended without a word."""
        return leases.boot_failed(int(host))

    def usage(self, host: str, container: str = "") -> Usage | None:
        cpu_s = cgroups.cpu_s(int(host), container)
        memory_mb = cgroups.memory_mb(int(host), container)
        return None if cpu_s is None or memory_mb is None else Usage(cpu_s, memory_mb)

    def give_back(self, host: str) -> None:
        """End it, unless somebody else has its number by now."""
        for one in leases.leases_of(self._run):
            if one.id == int(host):
                leases.give_back(one)

    def close(self) -> None:
        """Nothing is held."""
