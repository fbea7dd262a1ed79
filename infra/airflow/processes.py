"""Processes by the session that they belong to, and how all of a session end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

STOP_S = 15.0
POLL_S = 0.1


def processes_of(session: int) -> list[int]:
    """Processes that are alive and belong to a session, whatever group they are in."""
    alive = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it has just ended
        if int(of) == session and state != "Z":
            alive.append(int(stat.parent.name))
    return alive


def born(pid: int) -> str:
    """When a process began, in ticks since boot; "" when there is none. Numbers are reused."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def end_session(session: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Ask the leader to stop, then kill what is left of its session: tasks have own groups."""
    with suppress(ProcessLookupError):
        os.kill(session, signal.SIGTERM)
    end_s = time.monotonic() + STOP_S
    while session in processes_of(session) and time.monotonic() < end_s:
        time.sleep(POLL_S)
    kill_session(session)
    if process is not None:
        process.wait()


def kill_session(session: int) -> None:
    """Kill what is left of a session, also when its leader is gone.

    What the kernel holds on to for ``STOP_S`` is left to it: others have to be looked after.
    """
    end_s = time.monotonic() + STOP_S
    while (left := processes_of(session)) and time.monotonic() < end_s:
        for one in left:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        time.sleep(POLL_S)
