"""The seconds of a run, on the wall."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from include.testbeds.live.operators.wire import now_us


@dataclass(slots=True)
class Clock:
    """Second 0 of the run is ``started_us`` (microseconds since 1970; 0: not yet begun).

    With ``scale`` 2 the run is twice as fast as the wall: its hour takes half an hour.
    """

    started_us: int = 0
    scale: float = 1.0

    def now_s(self) -> float:
        """Seconds since the run began; 0 before it has."""
        return max(0.0, self.at(now_us())) if self.started_us else 0.0

    def at(self, us: int) -> float:
        """The second of the run at a time of the wall."""
        return (us - self.started_us) / 1e6 * self.scale

    def wait_until(self, t_s: float, meanwhile: Callable[[], float]) -> None:
        """Return at second ``t_s``; call ``meanwhile``, which says when to call it again."""
        while True:
            left_s = (t_s - self.at(now_us())) / self.scale
            if left_s <= 0:
                return
            self.rest(min(meanwhile(), left_s))

    @staticmethod
    def rest(wall_s: float) -> None:
        """Do nothing for so many seconds of the wall."""
        time.sleep(wall_s)
