"""Time that neither jumps nor stands: what polls are timed by."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator

JUMP_S = 5.0


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
    return time.clock_gettime(time.CLOCK_BOOTTIME)


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
