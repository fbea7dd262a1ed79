"""Files and folders that are there completely or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from uuid import uuid4


def sibling(target: Path, purpose: str) -> Path:
    """A fresh hidden name beside ``target``, so that a rename stays on one file system."""
    return target.with_name(f".{target.name}.{purpose}-{uuid4().hex[:8]}")


def write_file(target: Path, content: bytes) -> None:
    """Write ``target`` whole: a reader sees the old content or the new, never a part.

    Raises OSError when the folder cannot be written; nothing is left behind then.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = sibling(target, "draft")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``target``; it is removed at the end unless moved away.

    Drafts that a killed process left behind are removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for left_over in target.parent.glob(f".{target.name}.draft-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    draft = sibling(target, "draft")
    draft.mkdir()
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def swap_in(draft: Path, target: Path) -> None:
    """Put the folder ``draft`` in the place of ``target``.

    A folder cannot be replaced in one step, so the old one steps aside first and comes back
    when the second rename fails. A kill between the two renames leaves no ``target``, never
    a mixed one; the next call cleans up.
    """
    for left_over in target.parent.glob(f".{target.name}.old-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    aside = sibling(target, "old")
    if target.exists():
        target.rename(aside)
    try:
        draft.rename(target)
    except OSError:
        if aside.exists():
            aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return sha256(path.read_bytes()).hexdigest()
