"""Parquet files of measured rows. The same rows give the same bytes, however they are handed in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.model.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_GROUP = 1024 * 1024


def write_parquet(where: Any, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write tables one after the other into a path or a file; one row group is held in memory.

    Text is stored as dictionaries, which are read fastest.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = [field.name for field in schema if field.type == "string"]
    options = {"compression": "zstd", "use_dictionary": text}
    with pq.ParquetWriter(where, schema, store_schema=False, **options) as writer:
        left, written = None, False
        for table in tables:
            left = pa.concat_tables([left, table]) if left else table
            while left.num_rows >= ROWS_PER_GROUP:
                writer.write_table(left.slice(0, ROWS_PER_GROUP), ROWS_PER_GROUP)
                left, written = left.slice(ROWS_PER_GROUP), True
        if left or not written:
            writer.write_table(left or schema.empty_table(), ROWS_PER_GROUP)


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
    import pyarrow.parquet as pq

    try:
        rows: int = pq.read_metadata(path).num_rows
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path} cannot be read ({error})") from error
    return rows
