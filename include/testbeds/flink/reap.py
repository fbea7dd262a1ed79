"""What runs on Flink hold on this machine: processes, by number and time of birth, and folders."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from signal import SIGKILL

from include.files.whole import changed_s
from include.model.errors import TestbedError, command
from include.testbeds.flink.installation import flink_state
from include.testbeds.flink.state import kept_logs, run_folder
from include.testbeds.live.files import HEARTBEAT, read_json
from include.testbeds.live.processes import DetachedProcess, started_for
from include.testbeds.reap import HeldResources, silent_s

AT_ONCE = 16
RUNS_WITH_LOGS = 20


def find() -> list[HeldResources]:
    """Every run that holds anything here."""
    return [
        HeldResources(
            folder.name,
            ("folder", *(f"process {name}" for name in processes_of(folder.name))),
            silent_s(folder / HEARTBEAT),
        )
        for folder in sorted((flink_state() / "runs").glob("*"))
    ]


def processes_of(run: str) -> dict[str, DetachedProcess]:
    """What runs for a run, by name; with its number where nobody could write that down."""
    return processes_in(run_folder(run))


def processes_in(folder: Path) -> dict[str, DetachedProcess]:
    """The same of a folder."""
    noted = {
        path.stem: process
        for path in sorted((folder / "processes").glob("*.json"))
        if (numbers := read_json(path))  # None: the run is being given back
        and (process := DetachedProcess(**numbers)).alive
    }
    started = started_for(folder / "processes")
    others = {f"{path.stem}:{process.pid}": process for path, process in started}
    return noted | {name: one for name, one in others.items() if one not in noted.values()}


def give_back_run(run: str) -> None:
    """End all processes of a run, whoever started them, and remove its folder but for its logs.

    Safe at any time and more than once.

    They are killed: what a JVM would tidy up is in the folder. Raises TestbedError with what is
    still there, and then keeps the folder, so that the next attempt finds it.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for process in processes_of(run).values():
            pool.submit(process.end, first=SIGKILL)
    if left := processes_of(run):
        named = ", ".join(f"{name} (pid {process.pid})" for name, process in left.items())
        raise TestbedError(
            f"of run {run} these processes cannot be ended: {named}; try again with "
            f"`{command('reap', '--remove')}`"
        )
    _keep_logs(run)
    shutil.rmtree(run_folder(run), ignore_errors=True)


def _keep_logs(run: str) -> None:
    """What went wrong is read after a run has given back, so the newest logs stay."""
    logs, kept = run_folder(run) / "log", kept_logs(run)
    if not logs.is_dir():
        return
    kept.parent.mkdir(exist_ok=True)
    shutil.rmtree(kept, ignore_errors=True)
    shutil.move(logs, kept)
    for folder in sorted(kept.parent.iterdir(), key=changed_s)[:-RUNS_WITH_LOGS]:
        shutil.rmtree(folder, ignore_errors=True)
