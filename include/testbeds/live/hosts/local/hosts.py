"""Docker hosts of this machine as a host provider, with CPU and memory from cgroups."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from include.model.host import HostFlavor
from include.testbeds.live.hosts.local import leases
from include.testbeds.live.hosts.provider import Usage


class LocalHosts:
    """A run's Docker hosts on this machine; see ``HostProvider``."""

    def __init__(self, run: str) -> None:
        self._run = run

    def check(self, flavor: HostFlavor, hosts: int) -> None:
        """Nothing to check: this machine has no quota."""

    def origin(self) -> dict[str, Any]:
        return {"testbed": "docker"}

    def lease(self, flavor: HostFlavor) -> str:
        return str(leases.lease(self._run, flavor).id)

    def leased(self) -> list[str]:
        return [str(lease.id) for lease in leases.leases_of(self._run)]

    def endpoint(self, host: str) -> str:
        return leases.endpoint(int(host))

    def boot_failed(self, host: str) -> str:
        return leases.boot_failed(int(host))

    def usage(self, host: str, container: str = "") -> Usage | None:
        cpu_s = _cpu_s(int(host), container)
        memory_mb = _memory_mb(int(host), container)
        return None if cpu_s is None or memory_mb is None else Usage(cpu_s, memory_mb)

    def give_back(self, host: str) -> None:
        """End the host, unless another run has its number by now."""
        for lease in leases.leases_of(self._run):
            if lease.id == int(host):
                leases.give_back(lease)

    def close(self) -> None:
        """Nothing is held."""


ROOT = Path("/sys/fs/cgroup")


def _cpu_s(host: int, container: str = "") -> float | None:
    """CPU seconds of a host or one of its containers so far; None if it is gone."""
    used = _number(_group("cpuacct", host, container) / "cpuacct.usage")
    return None if used is None else used / 1e9


def _memory_mb(host: int, container: str = "") -> float | None:
    """Memory in use without the reclaimable file cache; None if the host is gone."""
    group = _group("memory", host, container)
    used = _number(group / "memory.usage_in_bytes")
    if used is None:
        return None
    return max(0, used - _inactive(group)) / 2**20


def _inactive(group: Path) -> int:
    try:
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next(
        (int(line.split()[1]) for line in lines if line.startswith("total_inactive_file")), 0
    )


def _group(controller: str, host: int, container: str) -> Path:
    prefix = os.environ.get("TIDEBENCH_LIVE_PREFIX") or "tb"
    return ROOT / controller / prefix / f"h{host}" / container


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
