"""What runs on Flink hold on this machine: processes, by number and time of birth, and folders."""

from __future__ import annotations

import math
import time

from include.testbeds.flink import give_back
from include.testbeds.flink.installation import flink_state
from include.testbeds.flink.state import run_folder
from include.testbeds.live.files import HEARTBEAT
from include.testbeds.reap import HeldResources


def find() -> list[HeldResources]:
    """Every run that holds anything here."""
    folders = sorted((flink_state() / "runs").glob("*"))
    return [
        HeldResources(
            folder.name,
            ("folder", *(f"process {name}" for name in give_back.processes_of(folder.name))),
            silent_s(folder.name),
        )
        for folder in folders
    ]


def give_back_run(run: str) -> None:
    """Give back everything of a run. Raises TestbedError with what could not be."""
    give_back.give_back(run)


def silent_s(run: str) -> float:
    """For how long nobody has looked after a run; infinite when nobody ever has."""
    try:
        return time.time() - (run_folder(run) / HEARTBEAT).stat().st_mtime
    except FileNotFoundError:
        return math.inf
