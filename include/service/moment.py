"""Times by which a service knows how long ago something was, whatever happens to the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Moment:
    """A time by the clock of the wall, and by one that nobody can set."""

    at_s: float
    """Seconds since 1970."""
    boot: str
    """Which start of the machine ``up_s`` counts from."""
    up_s: float

    def before(self, seconds: float) -> Moment:
        """The moment so long ago."""
        return Moment(self.at_s - seconds, self.boot, self.up_s - seconds)

    def since(self, earlier: Moment) -> float:
        """Seconds that have passed for certain, at least 0.

        Within one start of the machine a clock that jumps changes nothing. After another start, or
        on another machine, it is the shorter of what its uptime and the clock of the wall say: an
        uptime may have begun long before, and a clock may have been set.
        """
        if self.boot == earlier.boot:
            return max(0.0, self.up_s - earlier.up_s)
        return max(0.0, min(self.up_s, self.at_s - earlier.at_s))


def moment() -> Moment:
    """Now. The machine's uptime also runs while it sleeps."""
    return Moment(time.time(), _boot(), time.clock_gettime(time.CLOCK_BOOTTIME))


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
