"""Time that neither jumps nor stands, whatever happens to the clock of the machine."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

JUMP_S = 5.0


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A time by the clock of the wall, and by one that nobody can set."""

    at_s: float
    """Seconds since 1970."""
    boot: str
    """Which start of the machine ``up_s`` counts from."""
    up_s: float

    @classmethod
    def now(cls) -> Timestamp:
        return cls(time.time(), _boot(), _up_s())

    def before(self, seconds: float) -> Timestamp:
        """The time so long ago."""
        return Timestamp(self.at_s - seconds, self.boot, self.up_s - seconds)

    def since(self, earlier: Timestamp) -> float:
        """Seconds that have passed for certain, at least 0.

        Within one start of the machine a clock that jumps changes nothing. After another start, or
        on another machine, it is the shorter of what its uptime and the clock of the wall say: an
        uptime may have begun long before, and a clock may have been set.
        """
        if self.boot == earlier.boot:
            return max(0.0, self.up_s - earlier.up_s)
        return max(0.0, min(self.up_s, self.at_s - earlier.at_s))


class SteadyClock:
    """Epoch seconds as of its beginning, and from then on as much as really passed, also while the
    machine slept.

    A clock of the machine that is set moves nothing; ``jumped_s`` says by how much it was.
    """

    def __init__(self) -> None:
        self._began_s, self._since = time.time(), _up_s()
        self._ahead_s = 0.0

    def now_s(self) -> float:
        return self._began_s + _up_s() - self._since

    def not_before(self, least_s: float) -> None:
        """Go on from there if it is earlier: time that was recorded does not come again."""
        if (behind_s := least_s - self.now_s()) > 0:
            self._began_s += behind_s
            self._ahead_s += behind_s

    def jumped_s(self) -> float:
        """By how much the clock of the machine was set since the last call, if by much; else 0."""
        by_s = time.time() + self._ahead_s - self.now_s()
        if abs(by_s) < JUMP_S:
            return 0.0
        self._ahead_s -= by_s
        return by_s


def _up_s() -> float:
    """Uptime of the machine, which also runs while it sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def turns(
    clock: SteadyClock, every_s: float, lasts_s: float, stop: threading.Event
) -> Iterator[float]:
    """The time, whenever it is a multiple of ``every_s``: processes that go on keep the beat.

    Turns that were missed are left out.
    """
    begun_s = next_s = math.ceil(clock.now_s() / every_s) * every_s
    while next_s <= begun_s + lasts_s and not stop.wait(max(0.0, next_s - clock.now_s())):
        yield next_s
        next_s = math.floor(clock.now_s() / every_s + 1) * every_s
