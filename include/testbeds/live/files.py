"""Files of a live testbed that outlive its processes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from include.files.whole import sibling, sync_names, write_synced
from include.model.errors import TestbedError

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPTS = REPOSITORY / "infra" / "live"
GIVE_UP_S = 120.0
HEARTBEAT = "heartbeat"
"""File in the run's folder that its window's task touches."""
ORIGIN = "origin.json"
"""File in the run's folder with the testbed and the origin of its hosts."""


def state_folder(variable: str, name: str) -> Path:
    """What the variable says, or var/<name>; with a name that no experiment can have, so that none
    has its folder there. Absolute, because processes that are started work in another directory.
    """
    return Path(os.environ.get(variable) or REPOSITORY / "var" / name).absolute()


def live_state() -> Path:
    """The state directory of `infra/live`."""
    return state_folder("TIDEBENCH_LIVE_STATE", ".live")


def run_folder(run: str) -> Path:
    """Folder for the run's state. Deleted after all resources are released."""
    return live_state() / "runs" / run


def script(name: str, *arguments: str) -> str:
    """Run a script of `infra/live`; returns its output. Raises TestbedError with its message."""
    command = [str(SCRIPTS / name), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=GIVE_UP_S
        )
    except subprocess.TimeoutExpired as error:
        raise TestbedError(
            f"{name} {' '.join(arguments)} takes more than {GIVE_UP_S:g} s"
        ) from error
    if done.returncode != 0:
        output = (done.stderr or done.stdout).strip()
        raise TestbedError(f"{name} {' '.join(arguments)} failed: {output[-500:]}")
    return done.stdout


def create(path: Path, content: bytes) -> bool:
    """Create a whole file. False if there is one, which stays as it is.

    It is on disk then: by the name of an installation its servers are found after a power cut.
    """
    beside = sibling(path, "draft")
    write_synced(beside, content)
    try:
        path.hardlink_to(beside)  # atomic, and fails if it exists
    except FileExistsError:
        return False
    finally:
        beside.unlink()
    sync_names(path.parent)
    return True


def read_json(path: Path) -> Any:
    """Content of a file, or None if it does not exist. Raises TestbedError if it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise TestbedError(
            f"{path} is damaged, as by a power cut ({error}); remove it once nothing of it runs"
        ) from error
