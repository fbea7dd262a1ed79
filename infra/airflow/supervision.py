"""Restarts services that end, and gives up if they end again and again."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.airflow.processes import end_session, kill_session

STAYED_S = 60.0
"""A service that ran this long started correctly, so earlier failures no longer count."""
MOST_STARTS = 6
"""Number of times in a row that a service may end sooner."""
LAST_LINES = 15


class CannotStay(Exception):
    """A service ended again and again; the message has the reason and the end of its log."""


@dataclass
class Service:
    """A service: its command, its process and its failures. Times are monotonic."""

    name: str
    command: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    began_s: float = 0.0
    due_s: float = 0.0
    soon: int = 0

    def start(self, environment: Mapping[str, str]) -> None:
        """Start it in its own session, so that all its processes can be found."""
        with self.log.open("a") as sink:
            self.process = subprocess.Popen(
                self.command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.began_s = time.monotonic()

    def end(self) -> str:
        """Note that it has ended, and end what it left behind; a line that says what comes next.

        Tasks of a scheduler that is gone end, too: the next one begins them again.
        Raises CannotStay.
        """
        assert self.process is not None
        ended, ran_s = how_it_ended(self.process.wait()), time.monotonic() - self.began_s
        kill_session(self.process.pid)
        self.process = None
        self.soon = self.soon + 1 if ran_s < STAYED_S else 1
        if self.soon >= MOST_STARTS:
            last = "\n".join(self.log.read_text(errors="replace").splitlines()[-LAST_LINES:])
            raise CannotStay(
                f"{self.name} {ended}, {self.soon} times in a row soon after its start, so it is "
                f"not started again. The end of {self.log}:\n\n{last}\n"
            )
        wait_s = 2 ** (self.soon - 1)
        self.due_s = time.monotonic() + wait_s
        return f"{self.name} {ended} after {in_words(ran_s)}; starting it again in {wait_s} s"


@dataclass
class Supervisor:
    """Keeps services running. ``started`` is called whenever there is a new process."""

    services: Sequence[Service]
    environment: Mapping[str, str]
    say: Callable[[str], None]
    started: Callable[[Sequence[int]], None]

    def tend(self) -> None:
        """Restart ended services. Raises CannotStay."""
        for service in self.services:
            if service.process is None and time.monotonic() >= service.due_s:
                service.start(self.environment)
                self.started([service.process.pid for service in self.services if service.process])
            elif service.process is not None and service.process.poll() is not None:
                self.say(service.end())

    def stop(self) -> None:
        """Stop every service, the last one first."""
        for service in reversed(self.services):
            if service.process is not None:
                end_session(service.process.pid, service.process)


def how_it_ended(code: int) -> str:
    """Sentence for an exit code of `subprocess`."""
    if code >= 0:
        return f"ended with exit code {code}"
    names = {member.value: f"{member.name} (signal {member.value})" for member in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"


def in_words(seconds: float) -> str:
    """A duration as text."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
