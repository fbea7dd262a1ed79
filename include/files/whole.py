"""Files and folders that are there completely or not at all.

Little is synced to the disk: a spec gives everything again, and whoever reads compares SHA-256 or
measures anew, so a power cut costs time only. What cannot be had again is (`write_synced`; the
journal of a live run syncs itself).
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from include.model.errors import SetupError, StoreError

BLOCK_BYTES = 4096
"""A full disk takes a file without content."""


def sibling(target: Path, purpose: str) -> Path:
    """A fresh hidden name beside ``target``, so that a rename stays on one file system."""
    return target.with_name(f".{target.name}.{purpose}-{uuid4().hex[:8]}")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file or nothing. Raises SetupError when the folder cannot be written."""
    with new_file(path) as draft:
        draft.write_bytes(content)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a fresh name beside ``path``, for a file that takes its place when all went well.

    Raises SetupError when the folder cannot be written.
    """
    draft, placed = sibling(path, "draft"), False
    try:
        with writing(path):
            if not path.parent.is_dir():
                make_folder(path.parent)
            yield draft
            draft.replace(path)
        placed = True
    finally:
        if not placed:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise SetupError, saying what to do, where the file cannot be written in the block."""
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"{path} cannot be written ({error.strerror}); make the folder writable, free some "
            "space, or name another one (--root, --out, TIDEBENCH_DATA_ROOT)"
        ) from error


def require_writable(path: Path) -> None:
    """Raise SetupError where no file can be written, before long work for one."""
    if path.is_dir():
        raise SetupError(f"{path} is a folder; name the file to write in it")
    with writing(path):
        make_folder(path.parent)
        draft = sibling(path, "draft")
        try:
            draft.write_bytes(bytes(BLOCK_BYTES))
        finally:
            draft.unlink(missing_ok=True)


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


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it. Raises SetupError where one of them is a file, or they are
    not called in UTF-8, as Arrow wants it."""
    try:
        str(folder.absolute()).encode()
    except UnicodeEncodeError:
        raise SetupError(f"{folder} cannot be written: it is no UTF-8; name another one") from None
    for place in (folder, *folder.parents):
        if place.is_file():
            raise SetupError(f"{folder} cannot be written: {place} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Comma-separated values with a header, lines ended by a line feed alone."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return sink.getvalue()


def csv_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, by the columns that its first line names."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_json(path: Path, value: Any) -> None:
    """Write readable JSON, keys in order."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Readable JSON, keys in order."""
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def read_json(path: Path) -> Any:
    """Read JSON. Raises StoreError when it is missing or damaged."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise StoreError(f"{path} is missing; run the tasks before this one again") from error
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}); remove it and run again") from error


def is_json(content: bytes) -> bool:
    """Whether it can be read; what a power cut has left of a file cannot."""
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``target``; it is removed at the end unless moved away.

    Drafts that a killed process left behind are removed first.
    """
    make_folder(target.parent)
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
    with path.open("rb") as file:
        return file_digest(file, sha256).hexdigest()


def changed_s(path: Path) -> float:
    """When a file was written; 0 where it is not there (any more)."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
