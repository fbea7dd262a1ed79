"""Whether what lies in an experiment's folder is still what was published, and of what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from include.files.whole import read_json
from include.model.errors import PublishError, SpecError, StoreError, command
from include.results.tables.staged import digest_or_absent

EXPECTED = {
    "experiment": str, "edition": str, "runs": list, "sha256": dict, "versions": dict,
    "made_of": dict,
}  # fmt: skip


def require_published(folder: Path) -> Path:
    """The manifest's path. Raises PublishError where nothing has been published."""
    path = folder / "published" / "manifest.json"
    if not path.is_file():
        first = command("report", folder)
        raise PublishError(f"{folder} holds nothing that was published; first: {first}")
    return path


def published_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a publication. Raises PublishError when there is none or it is damaged."""
    path = require_published(folder)
    try:
        manifest = read_json(path)
    except StoreError:
        manifest = None
    if (
        not isinstance(manifest, dict)
        or any(not isinstance(manifest.get(name), kind) for name, kind in EXPECTED.items())
        or not all(isinstance(row, dict) and "run" in row for row in manifest["runs"])
    ):
        raise PublishError(f"{path} is damaged; publish again: {command('report', folder)}")
    return manifest


def changes(folder: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Files that have changed since publication, each with what to do: tables, pages, the verdict,
    inputs and manifests of runs. Measured rows are not checked here.
    """
    again = f"publish again: {command('report', folder)}"
    for name, sha256 in manifest["sha256"].items():
        path = folder / "published" / name
        if digest_or_absent(path) != sha256:
            yield f"- {path} is not the file that was published; {again}"
    for name, sha256 in manifest["made_of"].items():
        if digest_or_absent(folder / name) != sha256:
            yield f"- {folder / name} is not the file that the tables are of; {again}"


def require_outside(out: Path, folder: Path) -> None:
    """Raise SpecError when a file would be written among those of the experiment."""
    if out.resolve().is_relative_to(folder.resolve()):
        raise SpecError("--out", [f"{out} is in the folder of the experiment; write it elsewhere"])
