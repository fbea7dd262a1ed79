"""Where measured rows, snapshots and commits are stored, and how: whole files or nothing.

    <root>/<experiment>/measurements/<table>/experiment=<experiment>/run=<run>/part-NNN.parquet
        part-000 of what is written once, part-all of what came window by window
    <root>/<experiment>/runs/<run>/rows/NNN.arrow until the run has ended: all rows of a window
    <root>/<experiment>/runs/<run>/run.json, snapshots/NNN.npz, commits/NNN.json, manifest.json

Every file is written beside its place and moved there in one step, so a process that is
killed leaves the old file or the new one. A window counts once its commit is there, and a
run once its manifest is. The same rows always give the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, get_type_hints

from include.files.whole import digest, new_file, read_json, write_bytes
from include.model.errors import StoreError
from include.runs.measurements.parquet import ParquetFile, rows_in
from include.runs.measurements.rows import TABLES
from include.runs.measurements.summaries import KEYS, Total
from include.runs.measurements.text import text_array
from include.runs.measurements.window import read_window, window_content

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


# Read when Arrow is loaded, which is later; its own allocator keeps 18 MB more of a short run.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

COMMITTED = {"parts", "ended_leases", "leases", "snapshot_sha256", "summary"}
"""What every commit has."""


@dataclass(frozen=True, slots=True)
class RunStore:
    """The files of one run. ``folder`` is that of the experiment."""

    folder: Path
    experiment: str
    run_id: str

    @property
    def home(self) -> Path:
        """Everything of the run but its rows."""
        return self.folder / "runs" / self.run_id

    @property
    def run_json(self) -> Path:
        return self.home / "run.json"

    @property
    def manifest(self) -> Path:
        """What was measured and with what; there only once the run is complete."""
        return self.home / "manifest.json"

    def commit(self, window: int) -> Path:
        return self.home / "commits" / f"{window:03d}.json"

    def read_commit(self, window: int) -> dict[str, Any]:
        """What a window has committed. Raises StoreError when it is missing or damaged."""
        path = self.commit(window)
        committed = read_json(path)
        if not isinstance(committed, dict) or not committed.keys() >= COMMITTED:
            raise StoreError(f"{path} is damaged: it is not what a window commits; {self._again()}")
        return committed

    def damage(self, windows: int) -> str:
        """What is not as the run of so many windows has left it, or "".

        Of a run that is complete every file is held against the digest in its manifest, of
        another its commits are read.
        """
        try:
            complete = self.manifest.is_file()
            for window in range(windows):
                if complete or self.commit(window).is_file():
                    self.read_commit(window)
            if not complete:
                return ""
            manifest = read_json(self.manifest)
            for part in manifest["parts"]:
                path = self.folder / part["path"]
                if not path.is_file():
                    return f"{path.name} of {path.parents[2].name} is missing"
                if digest(path) != part["sha256"]:
                    return f"{path.name} of {path.parents[2].name} is not what was measured"
            arrivals = self.home / "arrivals.csv"
            if not arrivals.is_file() or digest(arrivals) != manifest["arrivals_sha256"]:
                return "arrivals.csv is missing or is not what arrived"
        except StoreError as error:
            return str(error).partition(";")[0].replace(f"{self.home}/", "")
        except (KeyError, TypeError, AttributeError, OSError):
            return "manifest.json is not what was written"
        return ""

    def snapshot(self, window: int) -> Path:
        """The state at the start of a window."""
        return self.home / "snapshots" / f"{window:03d}.npz"

    def rows(self, window: int) -> Path:
        """The rows of a window, until they are gathered."""
        return self.home / "rows" / f"{window:03d}.arrow"

    def part(self, table: str, part: int) -> Path:
        partition = Path(f"experiment={self.experiment}") / f"run={self.run_id}"
        return self.folder / "measurements" / table / partition / f"part-{part:03d}.parquet"

    def whole(self, table: str) -> Path:
        """The rows of one table and every window, once they have been gathered."""
        return self.part(table, 0).with_name("part-all.parquet")

    def remove(self) -> None:
        """Remove everything of the run. Repeated after a kill, it removes the rest."""
        for table in TABLES:
            shutil.rmtree(self.part(table, 0).parent, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)  # last: without it the rows would be nobody's

    def write_rows(self, table: str, part: int, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Store rows of one table; returns path (relative to the folder), rows and sha256.

        Of a run that is complete nothing is stored again.
        """
        rows, sink = to_arrow(table, columns), io.BytesIO()
        with ParquetFile(sink, schema(table)) as file:
            file.append(rows)
        path = self.part(table, part)
        return self._described(path, rows.num_rows, self._write(path, sink.getvalue()))

    def write_window(self, window: int, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Store the rows of a window until they are gathered; returns what ``write_rows`` does."""
        arrow = {table: to_arrow(table, columns) for table, columns in tables.items()}
        rows = sum(table_rows.num_rows for table_rows in arrow.values())
        path = self.rows(window)
        return self._described(path, rows, self._write(path, window_content(arrow)))

    def gather(self, tables: Sequence[str], last: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Put a file per table in the place of one per window; returns what ``write_rows`` does.

        ``last`` is the commit of the last window, which is written after this. To open a small file
        costs as much as to read some ten thousand rows. Killed anywhere and repeated, it ends the
        same: windows are removed only when all tables are there, so while one is missing they are
        complete. Raises StoreError when rows are missing or damaged.
        """
        windows = last["summary"]["window"] + 1
        parts = [self.rows(window) for window in range(windows)]
        are_here = all(part.is_file() for part in parts)
        for window, part in enumerate(parts if are_here else ()):
            commit = self.read_commit(window) if window < windows - 1 else last
            if digest(part) != commit["parts"][0]["sha256"]:
                raise StoreError(
                    f"rows in {part} are not those that were committed; {self._again()}"
                )
        wholes = {table: self.whole(table) for table in tables}
        try:
            if are_here:
                _gather(wholes, parts)
            gathered = [
                self._described(path, rows_in(path), digest(path)) for path in wholes.values()
            ]
        except StoreError as error:
            raise StoreError(f"rows in {error}; {self._again()}") from error
        shutil.rmtree(self.rows(0).parent, ignore_errors=True)
        return gathered

    def _again(self) -> str:
        return f"remove {self.home} and run again: the same spec gives the same rows"

    def write_snapshot(self, window: int, arrays: Mapping[str, np.ndarray]) -> str:
        """Store the state at the start of a window, never pickled. Returns the file's SHA-256."""
        import numpy as np

        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        return self._write(self.snapshot(window), buffer.getvalue())

    def read_snapshot(self, window: int, sha256: str | None = None) -> dict[str, np.ndarray]:
        """Its arrays. Raises StoreError when it is missing, or not what was committed."""
        import numpy as np

        path = self.snapshot(window)
        if not path.is_file():
            raise StoreError(f"the snapshot {path} is missing; {self._again()}")
        content = path.read_bytes()
        if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
            problem = f"the snapshot {path} is not the one that was committed"
            raise StoreError(f"{problem}; {self._again()}")
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise StoreError(
                f"the snapshot {path} is damaged ({error}); {self._again()}"
            ) from error

    def _write(self, path: Path, content: Any) -> str:
        """Write a file unless the run is complete. Returns the SHA-256 of its content."""
        if not self.manifest.is_file():
            write_bytes(path, content)
        return hashlib.sha256(content).hexdigest()

    def _described(self, path: Path, rows: int, sha256: str) -> dict[str, Any]:
        return {"path": path.relative_to(self.folder).as_posix(), "rows": rows, "sha256": sha256}


def _gather(wholes: Mapping[str, Path], windows: Iterable[Path]) -> None:
    """Write the files of all tables while the windows are read, one at a time."""
    with ExitStack() as files:
        drafts = {table: files.enter_context(new_file(path)) for table, path in wholes.items()}
        sinks = {
            table: files.enter_context(ParquetFile(draft, schema(table)))
            for table, draft in drafts.items()
        }
        totals = {
            table: Total(table, files.enter_context(TemporaryFile(dir=draft.parent)))
            for table, draft in drafts.items()
            if table in KEYS
        }
        for window in windows:
            rows = read_window(window)
            for table, sink in sinks.items():
                if table in totals:
                    totals[table].add(rows[table])
                else:
                    sink.append(rows[table])
        for table, total in totals.items():
            for columns in total.columns():
                sinks[table].append(to_arrow(table, columns))


@cache
def schema(table: str) -> pa.Schema:
    """The Parquet schema of a measured table: the fields of its dataclass, never null."""
    import pyarrow as pa

    kinds = {float: pa.float64(), int: pa.int64(), bool: pa.bool_(), str: pa.string()}
    cls = TABLES[table]
    hints = get_type_hints(cls)
    return pa.schema(
        [pa.field(f.name, kinds[hints[f.name]], nullable=False) for f in dataclasses.fields(cls)]
    )


def to_arrow(table: str, columns: Mapping[str, Any]) -> pa.Table:
    """Columns (arrays, lists or Coded) as an Arrow table with the schema of ``table``.

    No columns at all are a table without rows; one that is missing takes the default of its
    field, and is a KeyError where there is none.

    Arrays are made of their buffers: ``pyarrow.array`` would import pandas first, which takes
    longer than writing a run.
    """
    import pyarrow as pa

    fields = schema(table)
    complete = {**_defaults(table, columns), **columns}
    arrays = [_arrow_array(complete[field.name] if columns else (), field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=fields)


def _defaults(table: str, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    optional = [
        f for f in dataclasses.fields(TABLES[table]) if f.default is not dataclasses.MISSING
    ]
    rows = len(next(iter(columns.values()))) if columns and optional else 0
    return {f.name: [f.default] * rows for f in optional}


def _arrow_array(values: Any, kind: pa.DataType) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    if kind == pa.string():
        return text_array(values)
    dtype = {pa.int64(): np.int64, pa.float64(): np.float64}.get(kind, bool)
    array = np.ascontiguousarray(values, dtype=dtype)
    content = np.packbits(array, bitorder="little") if dtype is bool else array
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(content)])
