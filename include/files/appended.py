"""CSV files that grow by whole rows, and survive a process that is killed anywhere.

A row is one line, so that a torn one is known by its missing end: it is cut off when the file is
opened again, and `whole_lines` leaves it out. Where a row cannot be written whole, because the disk
is full, nothing of it stays.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from include.files.whole import csv_text
from include.model.errors import SetupError, StoreError


class AppendedRows:
    """The rows of one CSV file with these columns. One process writes it at a time.

    Raises StoreError when the file has other columns, SetupError when it cannot be written.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self._columns = path, tuple(columns)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._not_written(error) from error
        self._cut_torn_row()
        self._require_columns()

    def append(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows, all or none. None is an empty cell, white space in a text becomes a space.

        Raises SetupError when they cannot be written.
        """
        sink = io.StringIO()
        lines = ([_on_a_line(cell) for cell in row] for row in rows)
        csv.writer(sink, lineterminator="\n").writerows(lines)
        self._write(sink.getvalue().encode())

    def close(self) -> None:
        os.close(self._file)

    def last(self) -> dict[str, str] | None:
        """The last row; None where there is none."""
        size = os.fstat(self._file).st_size
        tail = os.pread(self._file, 65536, max(0, size - 65536)).decode(errors="replace")
        lines = tail.splitlines()[1 if size <= 65536 else 0 :]
        for line in reversed(lines):
            cells = next(csv.reader([line]), [])
            if len(cells) == len(self._columns):  # older versions wrote line ends into cells
                return dict(zip(self._columns, cells, strict=True))
        return None

    def _cut_torn_row(self) -> None:
        size = os.fstat(self._file).st_size
        tail = os.pread(self._file, 65536, max(0, size - 65536))
        if tail and not tail.endswith(b"\n"):
            try:
                os.ftruncate(self._file, size - len(tail) + tail.rfind(b"\n") + 1)
            except OSError as error:
                raise self._not_written(error) from error

    def _require_columns(self) -> None:
        header = csv_text(self._columns, ()).encode()
        there = os.pread(self._file, len(header), 0)
        if not there:
            self._write(header)
        elif there != header:
            hint = f"{self.path} has other columns: another version wrote it; name another folder"
            raise StoreError(hint)

    def _write(self, content: bytes) -> None:
        """All of it or nothing. Raises SetupError."""
        self._cut_torn_row()  # what could not be cut off when it was torn
        size = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, content)
            if written < len(content):
                raise OSError(28, "No space left on device")
        except OSError as error:
            with suppress(OSError):  # as where the file system has turned read-only
                os.ftruncate(self._file, size)
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> SetupError:
        hint = "make the folder writable, or free some space"
        return SetupError(f"{self.path} cannot be written ({error.strerror}); {hint}")


def whole_lines(path: Path, last_bytes: int | None = None) -> Iterator[str]:
    """The header and the rows of such a file as lines, without a row that is torn.

    With ``last_bytes``, of a longer file only the rows within its last bytes. It may be read while
    rows are appended. Raises OSError when it cannot be read.
    """
    with path.open("rb") as file:
        header = file.readline()
        if last_bytes is not None:
            skipped = os.fstat(file.fileno()).st_size - last_bytes
            if skipped > len(header):
                file.seek(skipped - 1)
                file.readline()  # to the beginning of a row
        for line in chain([header], file):
            if line.endswith(b"\n"):
                yield line.decode()


def _on_a_line(cell: Any) -> Any:
    return " ".join(cell.split()) if isinstance(cell, str) else cell
