"""Give back what dead runs have left on testbeds that lease.

A run is dead when nothing has looked after it for a while; a window's task looks every second. Only
what carries the id of a run is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from include.model.errors import TestbedError, TidebenchError
from include.testbeds import TESTBEDS

DEAD_AFTER_S = 600.0


@dataclass(frozen=True, slots=True)
class HeldResources:
    """A run that holds something, and for how long nobody has looked after it.

    ``silent_s`` is infinite when nobody ever has, and negative while it is not even due to end.
    """

    run: str
    holds: tuple[str, ...]
    silent_s: float

    def dead(self, after_s: float) -> bool:
        """Whether nobody has looked after it for so long."""
        return self.silent_s >= after_s

    def described(self, after_s: float) -> str:
        """One line for a person."""
        silent = f"nobody has looked after it for {self.silent_s:.0f} s"
        if self.silent_s == float("inf"):
            silent = "nobody has ever looked after it"
        elif self.silent_s < 0:
            silent = f"of another installation, and due to end in {-self.silent_s:.0f} s"
        verdict = "dead" if self.dead(after_s) else "alive"
        return f"{self.run}: {verdict}, {silent}: {', '.join(self.holds)}"


class Reaper(Protocol):
    """Of one testbed; a module with these functions is one."""

    def find(self) -> list[HeldResources]:
        """Every run that holds anything. Raises TestbedError when somebody does not answer."""
        ...

    def give_back_run(self, run: str) -> None:
        """Give back everything of a run. Raises TestbedError with what could not be."""
        ...


def reap(
    *,
    remove: bool,
    after_s: float = DEAD_AFTER_S,
    testbeds: Collection[str] = TESTBEDS,
    say: Callable[[str], None],
) -> int:
    """List what runs hold, and give back what dead ones do where ``remove`` is set.

    Everything is tried; then raises TestbedError with all that went wrong. Returns the number of
    dead runs.
    """
    dead, problems = 0, []
    for name in testbeds:
        reaper = TESTBEDS[name].reaper
        if reaper is None:
            continue
        try:
            leftovers = reaper().find()
        except TidebenchError as error:
            problems.append(f"{name}: {error}")
            continue
        if not leftovers:
            say(f"{name}: no run holds anything")
        for leftover in leftovers:
            say(f"{name}: {leftover.described(after_s)}")
            if not leftover.dead(after_s):
                continue
            dead += 1
            try:
                if remove:
                    reaper().give_back_run(leftover.run)
                    say(f"{name}: {leftover.run}: given back")
            except TidebenchError as error:
                problems.append(f"{name}: {error}")
    if problems:
        raise TestbedError("\n".join(problems))
    return dead
