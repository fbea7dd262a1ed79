"""Parquet files of measured rows. The same rows give the same bytes, however they are handed in.

What a run needs is taken from ``pyarrow._parquet``: ``pyarrow.parquet`` around it also loads file
systems of clouds, 5 MB.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from include.model.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_GROUP = 32 * 1024
TABLES_AT_ONCE = 64


class ParquetFile:
    """A new file that tables are appended to; at most a row group and a table are in memory.

    Text is stored as dictionaries, which are read fastest.
    """

    def __init__(self, where: Any, schema: pa.Schema) -> None:
        import pyarrow as pa
        from pyarrow._parquet import ParquetWriter

        text = [field.name for field in schema if field.type == "string"]
        options = {"compression": "zstd", "use_dictionary": text, "store_schema": False}
        self._writer = ParquetWriter(where, schema, writer_engine_version="V2", **options)
        self._pending = [pa.Table.from_batches([], schema)]
        self._rows_pending = self._rows_written = 0

    def append(self, table: pa.Table) -> None:
        """Write every row group that is now full."""
        import pyarrow as pa

        self._pending.append(table)
        if len(self._pending) == TABLES_AT_ONCE:  # a table of some rows is mostly not its rows
            self._pending = [pa.concat_tables(self._pending).combine_chunks()]
        self._rows_pending += table.num_rows
        if self._rows_pending >= ROWS_PER_GROUP:
            self._write(self._rows_pending // ROWS_PER_GROUP * ROWS_PER_GROUP)

    def _write(self, rows: int) -> None:
        import pyarrow as pa

        table = pa.concat_tables(self._pending)
        self._writer.write_table(table.slice(0, rows), ROWS_PER_GROUP)
        self._pending = [table.slice(rows)]
        self._rows_pending -= rows
        self._rows_written += rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Write what is left; a file without rows has one empty row group."""
        if error is None and (self._rows_pending or not self._rows_written):
            self._write(self._rows_pending)
        self._writer.close()


def read_parquet(path: Path) -> pa.Table:
    """All rows of a file. Raises StoreError when it is missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path).read()
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path} cannot be read ({error})") from error


def rows_in(path: Path) -> int:
    """How many rows a file has. Raises StoreError when it is missing or damaged."""
    import pyarrow as pa
    from pyarrow._parquet import ParquetReader

    try:
        reader = ParquetReader()
        reader.open(path)
        rows: int = reader.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path} cannot be read ({error})") from error
    return rows
