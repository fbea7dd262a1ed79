"""One process at a time: locks that the system frees when their process ends, however it ends."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from include.files.whole import writing
from include.model.errors import SetupError, StoreError

WAIT_S = 6 * 3600.0
"""How long anybody waits for a run or a report of somebody else."""
LOOK_S = 0.2
TRIES = 100
"""To make a folder that others remove meanwhile; after so many, something else is in its place."""
FOLDER = "locks"
REPORT = "report"
log = logging.getLogger(__name__)
_held: set[Path] = set()
"""Locks of this process, which may take one of its own again."""


def lock_of(folder: Path, name: str) -> Path:
    """The lock of a run, or of the report, of the experiment in ``folder``."""
    return folder / FOLDER / f"{name}.lock"


def locked(folder: Path) -> list[str]:
    """What other processes are at, of the experiment in ``folder``: ids of runs, or the report."""
    there = sorted((folder / FOLDER).glob("*.lock"))
    return [path.stem for path in there if path not in _held and _is_locked(path)]


@contextmanager
def alone(folder: Path, name: str, wait_s: float = WAIT_S) -> Iterator[None]:
    """Do what only one process at a time may do with a run or a report.

    Says once in the log who is at it, and waits. Raises StoreError after ``wait_s`` seconds,
    SetupError when the folder cannot be written, or has no locks.
    """
    path = lock_of(folder, name)
    if path in _held:
        yield
        return
    file = _acquired(path, name, time.monotonic() + wait_s)
    _held.add(path)
    try:
        yield
    finally:
        _held.discard(path)
        # A folder that cannot be written any more keeps the file, which nobody has locked then.
        with suppress(OSError):
            path.unlink(missing_ok=True)  # while it is locked: whoever waits looks for a new file
        file.close()
        with suppress(OSError):
            path.parent.rmdir()


def _acquired(path: Path, name: str, end_s: float) -> IO[str]:
    """The open lock file, locked."""
    waits = False
    while True:
        file = _open_file(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(file)
            file.close()
            if not waits:
                log.warning("%s: %s; waiting until it is through", name, holder)
            if time.monotonic() > end_s:
                problem = f"{name}: {holder}, and is not through; end it, or try again later"
                raise StoreError(problem) from None
            waits = True
            time.sleep(LOOK_S)
            continue
        except OSError as error:
            file.close()
            raise SetupError(
                f"{path} cannot be locked ({error.strerror}); name a folder of a file system that "
                "has locks (--root, --out, TIDEBENCH_DATA_ROOT)"
            ) from error
        if _is_there(path, file):
            break
        file.close()
    about = {"pid": os.getpid(), "since": datetime.now(UTC).isoformat(" ", "seconds")}
    try:
        with writing(path):
            file.truncate(0)
            json.dump(about, file)
            file.flush()
    except SetupError:
        path.unlink(missing_ok=True)
        with suppress(OSError):  # it would write what is left
            file.close()
        raise
    return file


def _open_file(path: Path) -> IO[str]:
    tries = 0
    with writing(path):
        while True:
            tries += 1
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                return path.open("a+", encoding="utf-8")
            except (FileNotFoundError, FileExistsError):  # whoever was through removes the folder
                if tries >= TRIES:
                    raise


def _is_there(path: Path, file: IO[str]) -> bool:
    """Whether the file that is locked is still the one at its path."""
    try:
        return os.fstat(file.fileno()).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _is_locked(path: Path) -> bool:
    try:
        with path.open("r", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _holder(file: IO[str]) -> str:
    file.seek(0)
    try:
        about = json.load(file)
        return f"process {about['pid']} is at it since {about['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process is at it"
