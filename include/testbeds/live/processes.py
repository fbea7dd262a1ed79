"""Processes that outlive their parent, identified by pid and start time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KILL_AFTER_S = 5.0
HELD_BY = "TIDEBENCH_HELD_BY"
"""Environment variable of a process with the file that its number is written to. Who starts it may
be killed before it has written that."""


@dataclass(frozen=True, slots=True)
class DetachedProcess:
    """A process in its own session. A pid may be reused; the start time tells them apart."""

    pid: int
    born: int

    @classmethod
    def running(cls, pid: int) -> DetachedProcess:
        """The process that has this pid now."""
        return cls(pid, _state_and_birth(pid)[1])

    @classmethod
    def start(
        cls,
        command: Sequence[str | Path],
        log: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        held_by: Path | None = None,
    ) -> DetachedProcess:
        """Start a command that outlives this process; what it writes is added to ``log``.

        By ``held_by`` :func:`started_for` finds it, until whoever starts it has written it down.
        """
        held = {HELD_BY: str(held_by)} if held_by else {}
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**(os.environ if env is None else env), **held},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process.returncode = 0  # whoever asks whether it is alive waits for it
        return cls.running(process.pid)

    @property
    def alive(self) -> bool:
        """Whether it runs (a zombie does not; where it is a child of this process it goes)."""
        state, born = _state_and_birth(self.pid)
        if state == "Z" and born == self.born:
            with suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
        return state not in DEAD and born == self.born

    @property
    def leads(self) -> bool:
        """Whether it runs and leads a session; children of it have its environment, too."""
        return self.alive and process_stat(self.pid)[3:4] == [str(self.pid)]

    def end(self, *, first: int = signal.SIGTERM, kill_after_s: float = KILL_AFTER_S) -> None:
        """Send signal ``first``, and after ``kill_after_s`` kill its process group."""
        for number, within_s in ((first, kill_after_s), (signal.SIGKILL, KILL_AFTER_S)):
            self._signal(number)
            end_s = time.monotonic() + within_s
            while self.alive and time.monotonic() < end_s:
                time.sleep(0.02)

    def _signal(self, number: int) -> None:
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


NOT_STARTED = DetachedProcess(0, 0)
DEAD = ("", "Z", "X")


def started_for(place: Path) -> list[tuple[Path, DetachedProcess]]:
    """Processes held by this file, or by files below this folder, that were written down or not."""
    wanted = f"{HELD_BY}={place}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended, or is somebody else's
        for held in variables:
            if held == wanted or held.startswith(wanted + b"/"):
                path = Path(os.fsdecode(held.partition(b"=")[2]))
                found.append((path, DetachedProcess.running(int(process.name))))
    return [(path, process) for path, process in found if process.leads]


def _state_and_birth(pid: int) -> tuple[str, int]:
    """State and start time in clock ticks since boot; "" and 0 if there is no process."""
    fields = process_stat(pid)
    return (fields[0], int(fields[19])) if fields else ("", 0)


def process_stat(pid: int) -> list[str]:
    """The fields behind the name in /proc/<pid>/stat (proc(5)); none if there is no process."""
    try:
        # A name may be any bytes, and one that is too long is cut within a letter.
        stat = Path(f"/proc/{pid}/stat").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return stat.rpartition(")")[2].split()
