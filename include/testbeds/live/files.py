"""Where a live testbed keeps what must outlive its processes, and how."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from include.model.errors import TestbedError

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPTS = REPOSITORY / "infra" / "live"
HEARTBEAT = "heartbeat"
"""A file of the run's folder that is touched by whoever looks after the run."""
ORIGIN = "origin.json"
"""A file of the run's folder: the testbed and where its hosts come from."""


def live_state() -> Path:
    """The state directory of `infra/live`: TIDEBENCH_LIVE_STATE, or var/.live.

    No experiment can have that name, so none has its folder there: a run that gives back what it
    held removes its own.
    """
    return Path(os.environ.get("TIDEBENCH_LIVE_STATE") or REPOSITORY / "var" / ".live")


def run_folder(run: str) -> Path:
    """Everything a run on this testbed has to remember; gone once it has given back all."""
    return live_state() / "runs" / run


def script(name: str, *arguments: str, give_up_s: float = 120) -> str:
    """What a script of `infra/live` prints. Raises TestbedError with its complaint."""
    command = [str(SCRIPTS / name), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=give_up_s
        )
    except subprocess.TimeoutExpired as error:
        raise TestbedError(
            f"{name} {' '.join(arguments)} takes more than {give_up_s:g} s"
        ) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise TestbedError(f"{name} {' '.join(arguments)} failed: {said[-500:]}")
    return done.stdout


def read_json(path: Path) -> Any:
    """The content of a file, or None when there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
