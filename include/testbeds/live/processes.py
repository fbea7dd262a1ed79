"""Processes that outlive the one that started them, found again by number and time of birth."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

KILL_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class DetachedProcess:
    """A process in a session of its own. Numbers are given again some day, births are not."""

    pid: int
    born: int

    @classmethod
    def of(cls, pid: int) -> DetachedProcess:
        """The process that has the number now."""
        return cls(pid, _born(pid))

    @property
    def alive(self) -> bool:
        """Whether it runs (a zombie does not)."""
        return self.born > 0 and _born(self.pid) == self.born

    def end(self, *, first: int = signal.SIGTERM, kill_after_s: float = KILL_AFTER_S) -> None:
        """Ask it to end, and after a while make its whole session."""
        self._signal(first)
        end_s = time.monotonic() + kill_after_s
        while self.alive and time.monotonic() < end_s:
            time.sleep(0.05)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.alive:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                return


def _born(pid: int) -> int:
    """Clock ticks from boot to the process's start; 0 when there is none, or it is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])
