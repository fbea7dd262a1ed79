"""All that is published of an experiment as one file to take home."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from include.files.whole import changed_s
from include.model.errors import PublishError
from include.results.reports.crate import zip_entry
from tidebench.page.files import FOLDERS, KINDS, find_file

_PIECE = 1 << 20


def bundle(root: Path, experiment: str) -> Iterator[bytes]:
    """A zip, piece by piece: a report of a thousand runs is not held in memory.

    The same files give the same bundle, whenever it is asked for. Raises PublishError where they
    were published anew meanwhile: a download that breaks off is better than two editions in one.
    """
    sink, manifest = _Sink(), root / experiment / "published" / "manifest.json"
    edition_s = changed_s(manifest)
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, path in _bundled(root, experiment):
            entry_of_file = zip_entry(f"{experiment}/{name}")
            with path.open("rb") as source, packed.open(entry_of_file, "w") as entry:
                while piece := source.read(_PIECE):
                    entry.write(piece)
                    yield sink.take()
        if changed_s(manifest) != edition_s:
            raise PublishError(f"{experiment} was published anew; ask for its bundle again")
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
