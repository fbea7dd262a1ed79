"""Docker hosts to lease: who has which, how they come up, and how they go.

A lease is a file ``<live state>/leases/<id>.json``, there before its host and gone after it, so a
host can always be found by its run whatever dies in between. Hosts without one are somebody's own
and are left alone.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from include.files.whole import write_json
from include.model.errors import CapacityExhausted
from include.model.host import HostFlavor
from include.testbeds.live.files import SCRIPTS, live_state, read_json, script
from include.testbeds.live.processes import DetachedProcess

HIGHEST_ID = 200
"""Numbers above are left to tests and to people."""
UP = re.compile(r"^host (\d+) up (tcp://\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HostLease:
    """A host and the run that has it; the process is the one that boots it."""

    id: int
    run: str
    pid: int = 0
    born: int = 0

    @property
    def boot(self) -> DetachedProcess:
        """The script that boots it."""
        return DetachedProcess(self.pid, self.born)


def lease(run: str, flavor: HostFlavor) -> HostLease:
    """Take a free number and boot a new, empty host. Raises CapacityExhausted."""
    taken = _take(run)
    log = _file(taken, "log")
    size = (f"{flavor.vcpus:g}", f"{flavor.memory_mb:g}M")
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [SCRIPTS / "hosts.sh", "add", str(taken), *size],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process.returncode = 0  # it is not ours to wait for: it may outlive us
    one = HostLease(taken, run, **asdict(DetachedProcess.of(process.pid)))
    write_json(_file(taken, "json"), asdict(one))
    return one


def leases_of(run: str) -> list[HostLease]:
    """Everything a run has leased and not given back."""
    return [one for one in leases() if one.run == run]


def leases() -> Iterator[HostLease]:
    """All leases of all runs."""
    for path in sorted((live_state() / "leases").glob("*.json")):
        if stored := read_json(path):
            yield HostLease(**stored)


def endpoint(number: int) -> str:
    """Where the daemon of a host listens; "" while it boots."""
    log = _file(number, "log")
    found = UP.search(log.read_text(encoding="utf-8")) if log.is_file() else None
    return found[2] if found else ""


def boot_failed(number: int) -> str:
    """Why a host will not come up; "" while it still may, or has."""
    stored = read_json(_file(number, "json"))
    if stored is None:
        return "it has no lease"
    if endpoint(number) or HostLease(**stored).boot.alive:
        return ""
    return _file(number, "log").read_text(encoding="utf-8").strip()[-300:] or "its boot was killed"


def give_back(one: HostLease) -> None:
    """End a host and everything on it, then its lease. Raises TestbedError when it stays."""
    one.boot.end(kill_after_s=0)  # else it could still make what is removed here
    script("hosts.sh", "rm", str(one.id))
    for kind in ("log", "json"):
        _file(one.id, kind).unlink(missing_ok=True)


def _take(run: str) -> int:
    folder = live_state() / "leases"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, HIGHEST_ID + 1):
        if (live_state() / "hosts" / str(number)).exists():
            continue
        beside = folder / f".{number}.{run}"
        write_json(beside, asdict(HostLease(number, run)))
        try:
            _file(number, "json").hardlink_to(beside)  # whole, and only when nobody has it
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
