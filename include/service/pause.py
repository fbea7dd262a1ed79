"""The switch that stops all changes: a file in the state of a service."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from include.files.whole import json_bytes, new_file, read_json
from include.model.errors import SetupError, StoreError

FILE = "paused.json"


def pause(state: Path, why: str) -> None:
    """Stop all changes from the next request on; returns when that is on disk.

    Raises SetupError when it cannot be written.
    """
    about = {"since": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "why": why}
    with new_file(state / FILE) as draft, draft.open("xb") as file:
        file.write(json_bytes(about))
        file.flush()
        os.fsync(file.fileno())
    try:
        sync_names(state)
    except OSError as error:
        raise SetupError(
            f"changes are stopped, but {state} cannot be synced to the disk ({error.strerror}); "
            "pause again, or a power cut may resume them"
        ) from error


def sync_names(folder: Path) -> None:
    """A file that was synced is lost all the same while its name is not on disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def resume(state: Path) -> bool:
    """Allow changes again; whether they were stopped. Raises SetupError when they stay stopped."""
    try:
        (state / FILE).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SetupError(
            f"{state / FILE} cannot be removed ({error.strerror}), so changes stay stopped; "
            "make the folder writable"
        ) from error
    return True


def why_paused(state: Path) -> str:
    """Since when changes are stopped and why; "" when they are not. A damaged file stops them."""
    try:
        if not (state / FILE).exists():
            return ""
        about = read_json(state / FILE)
        reason = f": {about['why']}" if about["why"] else ""
        return f"paused since {about['since']}{reason}"
    except (StoreError, OSError, KeyError, TypeError):
        return f"paused, and {FILE} cannot be read"
