"""This code as one file, which Spark hands to workers that have no repository."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from include.controllers import CONTROLLERS
from include.runs.versions import COMMIT, INCLUDE, versions

SKIPPED = {"__pycache__"}


def user_roots(controllers: Iterable[str]) -> dict[Path, Path]:
    """Packages and modules that controllers of a user's own lie in, each with its folder."""
    roots = {}
    for name in controllers:
        top = CONTROLLERS.path_of(name).partition(":")[0].partition(".")[0]
        spec = find_spec(top) if top else None
        if spec and spec.origin and top != INCLUDE.name:
            source = Path(spec.origin)
            root = source.parent if source.name == "__init__.py" else source
            roots[root] = root.parent
    return roots


def archive_in(folder: Path, user_roots: Mapping[Path, Path]) -> Path:
    """Write ``tidebench.zip`` into a folder: `include/` as it is here, and of which commit it is,
    with packages of a user's ``own`` beside it.

    To be unpacked before use: topologies, calibrations and levels are read as files, and compiled
    functions are kept beside their source.
    """
    path = folder / "tidebench.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for root, parent in {INCLUDE: INCLUDE.parent, **user_roots}.items():
            for file in sorted(root.rglob("*")) if root.is_dir() else [root]:
                within = file.relative_to(parent)
                if file.is_file() and not SKIPPED.intersection(within.parts):
                    archive.write(file, within)
        archive.writestr(COMMIT.name, versions()["git_commit"] + "\n")
    return path
