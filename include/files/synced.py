"""Files that cannot be had again: on disk, with their names, when a call returns."""

from __future__ import annotations

import os
from pathlib import Path

from include.files.whole import new_file
from include.model.errors import SetupError


def write_synced(path: Path, content: bytes) -> None:
    """Write a whole file or nothing; returns when it is on disk.

    Raises SetupError when it cannot be written, or synced.
    """
    with new_file(path) as draft, draft.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        sync_names(path.parent)
    except OSError as error:
        raise SetupError(
            f"{path} is written, but {path.parent} cannot be synced to the disk "
            f"({error.strerror}); try again, or a power cut may take it back"
        ) from error


def sync_names(folder: Path) -> None:
    """A file that was synced is lost all the same while its name is not on disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
