"""This code as one file, which Spark hands to workers that have no repository."""

from __future__ import annotations

import zipfile
from pathlib import Path

from include.runs.versions import COMMIT, INCLUDE, versions

SKIPPED = {"__pycache__"}


def archive_in(folder: Path) -> Path:
    """Write ``tidebench.zip`` into a folder: `include/` as it is here, and of which commit it is.

    To be unpacked before use: topologies, calibrations and levels are read as files, and compiled
    functions are kept beside their source.
    """
    path = folder / "tidebench.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(INCLUDE.rglob("*")):
            within = file.relative_to(INCLUDE.parent)
            if file.is_file() and not SKIPPED.intersection(within.parts):
                archive.write(file, within)
        archive.writestr(COMMIT.name, versions()["git_commit"] + "\n")
    return path
