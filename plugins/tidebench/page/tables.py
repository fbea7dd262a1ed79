"""What there is to take home of a published experiment: every table, and all of it as one file."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from include.results.reports.crate import zip_entry
from include.results.reports.documents import FORMATS
from include.results.tables.catalogue import PUBLISHED, schema_of
from tidebench.page.files import FOLDERS, KINDS, find_file

_PIECE = 1 << 20


def tables_of(root: Path, experiment: str) -> Mapping[str, object] | None:
    """Everything that the page of downloads shows; None where nothing is published."""
    manifest = find_file(root, experiment, "published/manifest.json")
    if manifest is None:
        return None
    content = json.loads(manifest.read_text(encoding="utf-8"))
    tables = [
        {
            "name": name,
            "about": schema_of(name),
            "rows": content.get("rows", {}).get(name),
            "files": {
                format_name: f"{name}.{suffix}"
                for suffix, format_name in FORMATS.items()
                if find_file(root, experiment, f"published/{name}.{suffix}")
            },
        }
        for name in PUBLISHED
    ]
    table_files = {f"{name}.{suffix}" for name in PUBLISHED for suffix in FORMATS}
    others = [
        path.name
        for path in sorted(manifest.parent.iterdir())
        if path.name not in table_files and find_file(root, experiment, f"published/{path.name}")
    ]
    return {
        "experiment": experiment,
        "edition": content.get("edition", ""),
        "tables": [table for table in tables if table["files"]],
        "others": others,
        "formats": list(FORMATS.values()),
        "bytes": sum(path.stat().st_size for _, path in _bundled(root, experiment)),
    }


def bundle(root: Path, experiment: str) -> Iterator[bytes]:
    """The same as a zip, piece by piece: a report of a thousand runs is not held in memory.

    The same files give the same bundle, whenever it is asked for.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, path in _bundled(root, experiment):
            entry_of_file = zip_entry(f"{experiment}/{name}")
            with path.open("rb") as source, packed.open(entry_of_file, "w") as entry:
                while piece := source.read(_PIECE):
                    entry.write(piece)
                    yield sink.take()
    yield sink.take()


def _bundled(root: Path, experiment: str) -> Iterator[tuple[str, Path]]:
    """Files that may be looked at one by one, too, and nothing else."""
    for folder in FOLDERS:
        top = root / experiment / folder
        for path in sorted(top.rglob("*")):
            name = f"{folder}/{path.relative_to(top)}"
            if path.suffix in KINDS and (file := find_file(root, experiment, name)):
                yield name, file


class _Sink(io.BytesIO):
    """Gives away once what is written; it knows no place to go back to, so the zip does not."""

    def tell(self) -> int:
        raise io.UnsupportedOperation

    def take(self) -> bytes:
        taken = self.getvalue()
        self.seek(0)
        self.truncate()
        return taken
