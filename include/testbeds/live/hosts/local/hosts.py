"""Docker hosts of this machine as a host provider, with CPU and memory from cgroups.

A lease is a file ``<live state>/leases/<id>.json``, written before its host boots and deleted
after the host is gone, so that a host can be found whichever process dies. Hosts without a lease
belong to people and are left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from include.files.whole import json_bytes, write_json
from include.model.errors import CapacityExhausted
from include.model.host import HostFlavor
from include.testbeds.live.files import SCRIPTS, create, live_state, read_json, script
from include.testbeds.live.hosts.provider import Usage
from include.testbeds.live.processes import DetachedProcess

HIGHEST_ID = 200
"""Higher numbers are for tests and people."""
UP = re.compile(r"^host (\d+) up (tcp://\S+)", re.MULTILINE)
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class HostLease:
    """A host, its run, and the process that boots it."""

    id: int
    run: str
    pid: int = 0
    born: int = 0

    @property
    def boot(self) -> DetachedProcess:
        """Process of the script that boots the host."""
        return DetachedProcess(self.pid, self.born)


def leases() -> Iterator[HostLease]:
    """Leases of all runs."""
    for path in sorted((live_state() / "leases").glob("*.json")):
        if stored := read_json(path):
            yield HostLease(**stored)


def leases_of(run: str) -> list[HostLease]:
    """Leases of a run."""
    return [lease for lease in leases() if lease.run == run]


class LocalHosts:
    """A run's Docker hosts on this machine; see ``HostProvider``."""

    def __init__(self, run: str) -> None:
        self._run = run

    def check(self, flavor: HostFlavor, hosts: int) -> None:
        """Nothing to check: this machine has no quota."""

    def origin(self) -> dict[str, Any]:
        return {"testbed": "docker"}

    def lease(self, flavor: HostFlavor) -> str:
        """Take a free number and boot a new, empty host. Raises CapacityExhausted."""
        taken = take_number(self._run)
        log = _file(taken, "log")
        log.unlink(missing_ok=True)
        size = (f"{flavor.vcpus:g}", f"{flavor.memory_mb:g}M")
        boot = DetachedProcess.start([SCRIPTS / "hosts.sh", "add", str(taken), *size], log)
        write_json(_file(taken, "json"), asdict(HostLease(taken, self._run, boot.pid, boot.born)))
        return str(taken)

    def leased(self) -> list[str]:
        return [str(lease.id) for lease in leases_of(self._run)]

    def endpoint(self, host: str) -> str:
        log = _file(host, "log")
        match = UP.search(log.read_text(encoding="utf-8")) if log.is_file() else None
        return match[2] if match else ""

    def boot_failed(self, host: str) -> str:
        stored = read_json(_file(host, "json"))
        if stored is None:
            return "it has no lease"
        if self.endpoint(host) or HostLease(**stored).boot.alive:
            return ""
        log = _file(host, "log").read_text(encoding="utf-8")
        return log.strip()[-300:] or "its boot was killed"

    def usage(self, host: str, container: str = "") -> Usage | None:
        cpu_s, memory_mb = _cpu_s(host, container), _memory_mb(host, container)
        return None if cpu_s is None or memory_mb is None else Usage(cpu_s, memory_mb)

    def give_back(self, host: str) -> None:
        """End the host and everything on it, then its lease, unless another run has its number by
        now. Raises TestbedError if it remains."""
        for lease in leases_of(self._run):
            if str(lease.id) == host:
                lease.boot.end(kill_after_s=0)  # it could otherwise recreate what is removed here
                script("hosts.sh", "rm", host)
                for kind in ("log", "json"):
                    _file(host, kind).unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing is held."""


def take_number(run: str) -> int:
    """A number that no other host has, leased to the run. Raises CapacityExhausted."""
    for number in range(1, HIGHEST_ID + 1):
        if (live_state() / "hosts" / str(number)).exists():
            continue
        if create(_file(number, "json"), json_bytes(asdict(HostLease(number, run)))):
            return number
    raise CapacityExhausted(
        f"all {HIGHEST_ID} hosts of this machine are leased; see `make live-down`"
    )


def _file(host: int | str, kind: str) -> Path:
    return live_state() / "leases" / f"{host}.{kind}"


def _cpu_s(host: str, container: str) -> float | None:
    """CPU seconds of a host or one of its containers so far; None if it is gone."""
    used = _number(_group("cpuacct", host, container) / "cpuacct.usage")
    return None if used is None else used / 1e9


def _memory_mb(host: str, container: str) -> float | None:
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


def _group(controller: str, host: str, container: str) -> Path:
    prefix = os.environ.get("TIDEBENCH_LIVE_PREFIX") or "tb"
    return CGROUPS / controller / prefix / f"h{host}" / container


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
