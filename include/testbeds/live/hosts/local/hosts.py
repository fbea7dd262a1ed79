"""Docker hosts of this machine as a host provider, with CPU and memory from cgroups.

A lease is a file ``<live state>/leases/<id>.json``, written before its host boots and deleted
after the host is gone, so that a host can be found whichever process dies. Hosts without a lease
belong to people and are left alone.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from include.files.whole import json_bytes, write_json
from include.model.errors import CapacityExhausted, TestbedError
from include.model.host import HostFlavor
from include.testbeds.live.files import (
    GIVE_UP_S,
    SCRIPTS,
    create,
    live_state,
    read_json,
    script,
)
from include.testbeds.live.hosts.provider import Usage
from include.testbeds.live.processes import DetachedProcess, started_for

HIGHEST_ID = 200
"""Higher numbers are for tests and people."""
UP = re.compile(r"^host (\d+) up (tcp://\S+)", re.MULTILINE)
AGAIN_AFTER_S = 0.1
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
        lease, command = _file(taken, "json"), (str(SCRIPTS / "hosts.sh"), "add", str(taken))
        boot = DetachedProcess.start([*command, *size], log, held_by=lease)
        write_json(lease, asdict(HostLease(taken, self._run, boot.pid, boot.born)))
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
        if HostLease(**stored).boot.alive:
            return ""
        if self.endpoint(host):  # asked second: the boot says so, and then it ends
            return ""
        log = _file(host, "log").read_text(encoding="utf-8")
        return log.strip()[-300:] or "its boot was killed"

    def usage(self, host: str, container: str = "") -> Usage | None:
        cpu_s, memory_mb = _cpu_s(host, container), _memory_mb(host, container)
        return None if cpu_s is None or memory_mb is None else Usage(cpu_s, memory_mb)

    def give_back(self, host: str) -> None:
        """End the host and everything on it, then its lease, unless another run has its number by
        now. Raises TestbedError if it remains, or another process takes too long over it."""
        path = _file(host, "json")
        with _alone(path):
            stored = read_json(path)
            if stored is None or HostLease(**stored).run != self._run:
                return
            boots = (HostLease(**stored).boot, *(boot for _, boot in started_for(path)))
            for boot in boots:  # it could otherwise recreate what is removed here
                boot.end(kill_after_s=0)
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


@contextmanager
def _alone(lease: Path) -> Iterator[None]:
    """Wait for another that gives the host back: of two that remove it at once, one would fail, or
    take the next host of that number. Raises TestbedError."""
    end_s = time.monotonic() + GIVE_UP_S
    with ExitStack() as stack:
        with suppress(FileNotFoundError):
            file = stack.enter_context(lease.open("rb"))
            while not _locked(file):
                if time.monotonic() > end_s:
                    raise TestbedError(f"another process has given it back for {GIVE_UP_S:g} s")
                time.sleep(AGAIN_AFTER_S)
        yield


def _locked(file: BinaryIO) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


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
