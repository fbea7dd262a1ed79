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


@dataclass(frozen=True, slots=True)
class DetachedProcess:
    """A process in its own session. A pid may be reused; the start time tells them apart."""

    pid: int
    born: int

    @classmethod
    def running(cls, pid: int) -> DetachedProcess:
        """The process that has this pid now."""
        return cls(pid, _born(pid))

    @classmethod
    def start(
        cls,
        command: Sequence[str | Path],
        log: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> DetachedProcess:
        """Start a command that outlives this process; what it writes is added to ``log``."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process.returncode = 0  # it is not ours to wait for
        return cls.running(process.pid)

    @property
    def alive(self) -> bool:
        """Whether it runs (a zombie does not)."""
        return self.born > 0 and _born(self.pid) == self.born

    def end(self, *, first: int = signal.SIGTERM, kill_after_s: float = KILL_AFTER_S) -> None:
        """Send signal ``first``, and after ``kill_after_s`` kill the whole session."""
        self._signal(first)
        end_s = time.monotonic() + kill_after_s
        while self.alive and time.monotonic() < end_s:
            time.sleep(0.05)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


NOT_STARTED = DetachedProcess(0, 0)


def _born(pid: int) -> int:
    """Start time in clock ticks since boot; 0 if the process does not exist or is dead."""
    fields = process_stat(pid)
    return 0 if not fields or fields[0] in "ZX" else int(fields[19])


def process_stat(pid: int) -> list[str]:
    """The fields behind the name in /proc/<pid>/stat (proc(5)); none if there is no process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return stat.rpartition(")")[2].split()
