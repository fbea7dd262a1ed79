"""The files of a folder, by what is in them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path


def digests(root: Path, *without: str, files: str = "*") -> dict[str, str]:
    """SHA-256 by path, but of files whose name has one of these parts."""
    return {
        path.relative_to(root).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob(files))
        if path.is_file() and not any(part in path.name for part in without)
    }
