"""Converts wall time to seconds of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from include.testbeds.live.operators.wire import now_us


@dataclass(slots=True)
class Clock:
    """Converts wall time to seconds of the run.

    Second 0 is ``started_us`` (microseconds since 1970; 0: not begun). With ``scale`` 2 an hour
    of the run takes half an hour.
    """

    started_us: int = 0
    scale: float = 1.0

    def now_s(self) -> float:
        """Seconds since the run began; 0 before."""
        return max(0.0, self.at(now_us())) if self.started_us else 0.0

    def at(self, us: int) -> float:
        """Second of the run at a wall time."""
        return (us - self.started_us) / 1e6 * self.scale

    def wait_until(self, t_s: float, meanwhile: Callable[[], float]) -> None:
        """Wait until ``t_s``, calling ``meanwhile``, which returns the seconds to its next call."""
        while self.at(now_us()) < t_s:
            rest_s = meanwhile()
            left_s = (t_s - self.at(now_us())) / self.scale  # after what took its time, too
            time.sleep(max(0.0, min(rest_s, left_s)))
