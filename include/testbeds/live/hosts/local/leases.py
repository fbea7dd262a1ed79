"""Leases of Docker hosts on this machine.

A lease is a file ``<live state>/leases/<id>.json``, written before its host boots and deleted
after the host is gone, so that a host can be found whichever process dies. Hosts without a lease
belong to people and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from include.files.whole import write_json
from include.model.errors import CapacityExhausted
from include.model.host import HostFlavor
from include.testbeds.live.files import SCRIPTS, live_state, read_json, script
from include.testbeds.live.processes import DetachedProcess

HIGHEST_ID = 200
"""Higher numbers are for tests and people."""
UP = re.compile(r"^host (\d+) up (tcp://\S+)", re.MULTILINE)


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


def lease(run: str, flavor: HostFlavor) -> HostLease:
    """Take a free number and boot a new, empty host. Raises CapacityExhausted."""
    taken = _take(run)
    log = _file(taken, "log")
    size = (f"{flavor.vcpus:g}", f"{flavor.memory_mb:g}M")
    log.unlink(missing_ok=True)
    boot = DetachedProcess.start([SCRIPTS / "hosts.sh", "add", str(taken), *size], log)
    host_lease = HostLease(taken, run, **asdict(boot))
    write_json(_file(taken, "json"), asdict(host_lease))
    return host_lease


def leases_of(run: str) -> list[HostLease]:
    """Leases of a run."""
    return [host_lease for host_lease in leases() if host_lease.run == run]


def leases() -> Iterator[HostLease]:
    """Leases of all runs."""
    for path in sorted((live_state() / "leases").glob("*.json")):
        if stored := read_json(path):
            yield HostLease(**stored)


def endpoint(number: int) -> str:
    """Address of a host's daemon; "" while it boots."""
    log = _file(number, "log")
    match = UP.search(log.read_text(encoding="utf-8")) if log.is_file() else None
    return match[2] if match else ""


def boot_failed(number: int) -> str:
    """Why a host will not come up; "" if it is up or may still come up."""
    stored = read_json(_file(number, "json"))
    if stored is None:
        return "it has no lease"
    if endpoint(number) or HostLease(**stored).boot.alive:
        return ""
    return _file(number, "log").read_text(encoding="utf-8").strip()[-300:] or "its boot was killed"


def give_back(host_lease: HostLease) -> None:
    """End a host and everything on it, then its lease. Raises TestbedError if it remains."""
    host_lease.boot.end(kill_after_s=0)  # it could otherwise recreate what is removed here
    script("hosts.sh", "rm", str(host_lease.id))
    for kind in ("log", "json"):
        _file(host_lease.id, kind).unlink(missing_ok=True)


def _take(run: str) -> int:
    folder = live_state() / "leases"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, HIGHEST_ID + 1):
        if (live_state() / "hosts" / str(number)).exists():
            continue
        beside = folder / f".{number}.{run}"
        write_json(beside, asdict(HostLease(number, run)))
        try:
            _file(number, "json").hardlink_to(beside)  # atomic, and fails if it exists
        except FileExistsError:
            continue
        finally:
            beside.unlink()
        return number
    raise CapacityExhausted(
        f"all {HIGHEST_ID} hosts of this machine are leased; see `make live-down`"
    )


def _file(number: int, kind: str) -> Path:
    return live_state() / "leases" / f"{number}.{kind}"
