"""The clocks of this machine as one moment."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

from include.service.history import Moment


def moment() -> Moment:
    """Now, by the wall and by the machine's uptime, which also runs while it sleeps."""
    return Moment(time.time(), _boot(), time.clock_gettime(time.CLOCK_BOOTTIME))


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
