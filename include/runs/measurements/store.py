"""Where measured rows, snapshots and commits are stored, and how: whole files or nothing.

    <root>/<experiment>/measurements/<table>/experiment=<experiment>/run=<run>/part-NNN.parquet
        part-000 of what is written once, part-all of what came window by window
    <root>/<experiment>/runs/<run>/run.json, commits/NNN.json, manifest.json
    <root>/<experiment>/runs/<run>/rows/NNN.arrow and snapshots/NNN.npz until the run has ended: all
        rows of a window, and the state before it; beside each its SHA-256

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, get_type_hints

from include.files.whole import digest, new_file, read_json, write_bytes, writing
from include.model.errors import SetupError, StoreError
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

COMMITTED = {"ended_leases", "leases", "summary"}
"""What every commit has."""
Columns = Mapping[str, Mapping[str, Any]]
"""By table its columns: arrays, lists or Coded."""


@dataclass(frozen=True, slots=True)
class RunStore:
    """The files of one run. ``folder`` is that of the experiment, which has its name."""

    folder: Path
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

    @property
    def traceback(self) -> Path:
        """Of what nobody raises on purpose, where that has ended the run last."""
        return self.home / "traceback.txt"

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
            if self.run_json.is_file():
                read_json(self.run_json)
            complete = self.manifest.is_file()
            for window in range(windows):
                if complete or self.commit(window).is_file():
                    self.read_commit(window)
            if not complete:
                return ""
            for path, problem in self.changed_parts():
                return f"{path.name} of {path.parents[2].name} {problem}"
            arrivals, manifest = self.home / "arrivals.csv", read_json(self.manifest)
            if not arrivals.is_file() or digest(arrivals) != manifest["arrivals_sha256"]:
                return "arrivals.csv is missing or is not what arrived"
        except StoreError as error:
            return str(error).partition(";")[0].replace(f"{self.home}/", "")
        except (KeyError, TypeError, AttributeError, OSError):
            return "manifest.json is not what was written"
        return ""

    def parts(self) -> list[tuple[Path, int, str]]:
        """Path, rows and SHA-256 of every file of rows, as the manifest of a complete run has them.

        Raises StoreError when it is missing or damaged.
        """
        manifest = read_json(self.manifest)
        try:
            return [
                (self.folder / part["path"], int(part["rows"]), part["sha256"])
                for part in manifest["parts"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{self.manifest} is not what was written; {self._again()}") from error

    def changed_parts(self) -> Iterator[tuple[Path, str]]:
        """Those that are not as the run has left them, each with what is wrong."""
        for path, _, sha256 in self.parts():
            if not path.is_file():
                yield path, "is missing"
            elif digest(path) != sha256:
                yield path, "is not what was measured"

    def snapshot(self, window: int) -> Path:
        """The state at the start of a window."""
        return self.home / "snapshots" / f"{window:03d}.npz"

    def rows(self, window: int) -> Path:
        """The rows of a window, until the run has ended."""
        return self.home / "rows" / f"{window:03d}.arrow"

    def part(self, table: str, part: int) -> Path:
        partition = Path(f"experiment={self.folder.name}") / f"run={self.run_id}"
        return self.folder / "measurements" / table / partition / f"part-{part:03d}.parquet"

    def whole(self, table: str) -> Path:
        """The rows of one table and every window, once the run has ended."""
        return self.part(table, 0).with_name("part-all.parquet")

    def remove(self) -> None:
        """Remove everything of the run. Repeated after a kill, it removes the rest, which nobody
        goes on with: it is of no code. Raises SetupError where something cannot be removed."""
        with writing(self.home):
            for name in ("manifest.json", "code.json"):
                (self.home / name).unlink(missing_ok=True)
        tables = [self.part(table, 0).parent for table in TABLES]
        for folder in (*tables, self.home):  # last: without it the rows would be nobody's
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                raise SetupError(f"{folder} cannot be removed; make it writable, then try again")

    def write_rows(self, table: str, part: int, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Store rows of one table; returns path (relative to the folder), rows and sha256.

        Of a run that is complete nothing is stored again.
        """
        rows, sink = to_arrow(table, columns), io.BytesIO()
        with ParquetFile(sink, schema(table)) as file:
            file.append(rows)
        path = self.part(table, part)
        return self._described(path, rows.num_rows, self._write(path, sink.getvalue()))

    def write_window(self, window: int, tables: Columns) -> None:
        """Store the rows of a window until the run has ended."""
        self._write_sealed(self.rows(window), window_content(_as_arrow(tables)))

    def write_wholes(
        self, tables: Sequence[str], stored: int, windows: Iterable[Columns]
    ) -> list[dict[str, Any]]:
        """Store a file per table of all windows; returns what ``write_rows`` does.

        The rows of the first windows are ``stored``, those of ``windows`` come after them. To open
        a small file costs as much as to read some ten thousand rows. Raises StoreError when rows
        are missing or damaged.
        """
        wholes = {table: self.whole(table) for table in tables}
        try:
            if not self.manifest.is_file():
                rows = chain(map(self._read_window, range(stored)), map(_as_arrow, windows))
                _write_wholes(wholes, rows)
            return [self._described(path, rows_in(path), digest(path)) for path in wholes.values()]
        except StoreError as error:
            raise StoreError(f"rows in {error}; {self._again()}") from error

    def _read_window(self, window: int) -> dict[str, pa.Table]:
        path = self.rows(window)
        if path.is_file() and not _is_sealed(path):
            raise StoreError(f"{path} are not those that were stored")
        return read_window(path)

    def remove_windows(self, *, commits: bool) -> None:
        """Remove what is stored until the run has ended, what processes that were killed have left
        half written, and ``commits`` if asked."""
        for path in (self.rows(0), self.snapshot(0), *([self.commit(0)] if commits else [])):
            shutil.rmtree(path.parent, ignore_errors=True)
        tables = [self.part(table, 0).parent for table in TABLES]
        for folder in (self.home, self.commit(0).parent, *tables):
            for draft in folder.glob(".*.draft-*"):
                draft.unlink(missing_ok=True)

    def _again(self) -> str:
        return f"remove {self.home} and run again: the same spec gives the same rows"

    def write_snapshot(self, window: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Store the state at the start of a window, never pickled, until the run has ended."""
        import numpy as np

        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        self._write_sealed(self.snapshot(window), buffer.getvalue())

    def read_snapshot(self, window: int) -> dict[str, np.ndarray]:
        """Its arrays. Raises StoreError when it is missing, or not what was stored."""
        import numpy as np

        path = self.snapshot(window)
        if not path.is_file():
            raise StoreError(f"the snapshot {path} is missing; {self._again()}")
        if not _is_sealed(path):
            problem = f"the snapshot {path} is not the one that was stored"
            raise StoreError(f"{problem}; {self._again()}")
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}

    def _write_sealed(self, path: Path, content: Any) -> None:
        """Write a file that is removed in the end, and before it its SHA-256 beside it."""
        write_bytes(_seal(path), hashlib.sha256(content).hexdigest().encode())
        write_bytes(path, content)

    def _write(self, path: Path, content: Any) -> str:
        """Write a file unless the run is complete. Returns the SHA-256 of its content."""
        if not self.manifest.is_file():
            write_bytes(path, content)
        return hashlib.sha256(content).hexdigest()

    def _described(self, path: Path, rows: int, sha256: str) -> dict[str, Any]:
        return {"path": path.relative_to(self.folder).as_posix(), "rows": rows, "sha256": sha256}


def _seal(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _is_sealed(path: Path) -> bool:
    """Whether a file is what it was when its SHA-256 was stored."""
    return _seal(path).is_file() and _seal(path).read_bytes() == digest(path).encode()


def _write_wholes(wholes: Mapping[str, Path], windows: Iterable[Mapping[str, pa.Table]]) -> None:
    """Write the files of all tables; rows of one window at a time are in memory as Arrow."""
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
        for rows in windows:
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

    No columns at all are a table without rows; one that is missing is a KeyError.

    Arrays are made of their buffers: ``pyarrow.array`` would import pandas first, which takes
    longer than writing a run.
    """
    import pyarrow as pa

    fields = schema(table)
    arrays = [_arrow_array(columns[field.name] if columns else (), field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=fields)


def _as_arrow(tables: Columns) -> dict[str, pa.Table]:
    return {table: to_arrow(table, columns) for table, columns in tables.items()}


def _arrow_array(values: Any, kind: pa.DataType) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    if kind == pa.string():
        return text_array(values)
    dtype = {pa.int64(): np.int64, pa.float64(): np.float64}.get(kind, bool)
    array = np.ascontiguousarray(values, dtype=dtype)
    content = np.packbits(array, bitorder="little") if dtype is bool else array
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(content)])
