"""Finds and ends the processes of a session."""

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
    """Living processes of a session, of all process groups."""
    alive = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, owner = fields_of(stat)[:4]
        except OSError:
            continue  # it has just ended
        if int(owner) == session and state != "Z":
            alive.append(int(stat.parent.name))
    return alive


def born(pid: int) -> str:
    """Start time of a process in ticks since boot; "" if it does not exist. Pids are reused."""
    try:
        return fields_of(Path(f"/proc/{pid}/stat"))[19]
    except OSError:
        return ""


def fields_of(stat: Path) -> list[str]:
    """The fields behind the name (proc(5)). A name may be any bytes, cut within a letter."""
    return stat.read_bytes().decode(errors="replace").rpartition(")")[2].split()


def end_session(session: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Stop the leader, then kill the rest of its session: tasks have their own groups."""
    with suppress(ProcessLookupError):
        os.kill(session, signal.SIGTERM)
    end_s = time.monotonic() + STOP_S
    while session in processes_of(session) and time.monotonic() < end_s:
        time.sleep(POLL_S)
    kill_session(session)
    if process is not None:
        process.wait()


def kill_session(session: int) -> None:
    """Kill the processes of a session, even if its leader is gone.

    What the kernel holds on to for ``STOP_S`` is left to it: others have to be looked after.
    """
    end_s = time.monotonic() + STOP_S
    while (left := processes_of(session)) and time.monotonic() < end_s:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)
