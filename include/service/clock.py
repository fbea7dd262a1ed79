"""Time that neither jumps nor stands: what polls are timed by."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator

JUMP_S = 5.0


class SteadyClock:
    """Epoch seconds as of its beginning, and from then on as much as really passed.

    A clock of the machine that is set moves nothing; ``jumped_s`` says by how much it was.
    """

    def __init__(self) -> None:
        self._began_s, self._since = time.time(), time.monotonic()
        self._ahead_s = 0.0

    def now_s(self) -> float:
        return self._began_s + time.monotonic() - self._since

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


def turns(
    clock: SteadyClock, every_s: float, until_s: float, stop: threading.Event
) -> Iterator[None]:
    """Yield now and then every ``every_s`` seconds; turns that were missed are left out."""
    begun_s = clock.now_s()
    while not stop.is_set():
        yield
        past = math.floor((clock.now_s() - begun_s) / every_s)
        next_s = begun_s + (past + 1) * every_s
        if next_s > until_s or stop.wait(max(0.0, next_s - clock.now_s())):
            return
