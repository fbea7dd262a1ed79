"""Gives back the resources that dead runs hold on leasing testbeds.

A run is dead if no process has updated its heartbeat for a while; a window's task does so every
second. Only resources with a run's id are touched.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from include.model.errors import TestbedError, TidebenchError
from include.testbeds import TESTBEDS

DEAD_AFTER_S = 600.0


@dataclass(frozen=True, slots=True)
class HeldResources:
    """Resources of a run, and the time since its last heartbeat.

    ``silent_s`` is infinite without any heartbeat, and negative before the run is due to end.
    """

    run: str
    holds: tuple[str, ...]
    silent_s: float

    def dead(self, after_s: float) -> bool:
        return self.silent_s >= after_s

    def described(self, after_s: float) -> str:
        silent = f"nobody has looked after it for {self.silent_s:.0f} s"
        if self.silent_s == math.inf:
            silent = "nobody has ever looked after it"
        elif self.silent_s < 0:
            silent = f"of another installation, and due to end in {-self.silent_s:.0f} s"
        verdict = "dead" if self.dead(after_s) else "alive"
        return f"{self.run}: {verdict}, {silent}: {', '.join(self.holds)}"


def silent_s(heartbeat: Path) -> float:
    """Time since a run's file was touched last; infinite where there is none, 0 where that is yet
    to come, because the clock was set back."""
    try:
        return max(0.0, time.time() - heartbeat.stat().st_mtime)
    except FileNotFoundError:
        return math.inf


class Reaper(Protocol):
    """Finds and gives back resources on one testbed; implemented by a module."""

    def find(self) -> list[HeldResources]:
        """Every run with resources. Raises TestbedError if a service does not answer."""
        ...

    def give_back_run(self, run: str) -> None:
        """Give back a run's resources. Raises TestbedError naming those that remain."""
        ...


def reap(
    *,
    remove: bool,
    after_s: float = DEAD_AFTER_S,
    testbeds: Collection[str] = TESTBEDS,
    say: Callable[[str], None],
) -> int:
    """List the resources of runs; with ``remove`` give back those of dead runs.

    Returns the number of dead runs. Raises TestbedError with all problems after trying all runs.
    """
    dead, problems = 0, list[str]()
    for name in testbeds:
        if not TESTBEDS[name].reaped_by:
            continue
        reaper, leftovers = TESTBEDS[name].reaper(), list[HeldResources]()
        with _told(name, problems):
            leftovers = reaper.find()
            if not leftovers:
                say(f"{name}: no run holds anything")
        for leftover in leftovers:
            say(f"{name}: {leftover.described(after_s)}")
            if not leftover.dead(after_s):
                continue
            dead += 1
            if remove:
                with _told(name, problems):
                    say(f"{name}: {leftover.run}: {_give_back(reaper, leftover.run, after_s)}")
    if problems:
        raise TestbedError("\n".join(problems))
    return dead


def _give_back(reaper: Reaper, run: str, after_s: float) -> str:
    """Give back a run that is still dead: while others were given back, somebody may have taken it
    up again. Returns what has become of it."""
    now = next((held for held in reaper.find() if held.run == run), None)
    if now is None:
        return "given back meanwhile"
    if not now.dead(after_s):
        return "alive again, and left alone"
    reaper.give_back_run(run)
    return "given back"


@contextmanager
def _told(testbed: str, problems: list[str]) -> Iterator[None]:
    """Note what goes wrong, so that nothing keeps the rest from being given back."""
    try:
        yield
    except TidebenchError as error:
        problems.append(f"{testbed}: {error}")
    except Exception as error:  # an answer nobody expected
        problems.append(f"{testbed}: {type(error).__name__}: {error}")
