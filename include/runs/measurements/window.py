"""The rows of one window, all tables in one file: fast to write and read, until the run has ended.

Arrow streams one behind the other; the schema of each has the name of its table.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from include.model.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

NAME = b"table"


def window_content(tables: Mapping[str, pa.Table]) -> pa.Buffer:
    """What a file has to hold; the same rows give the same bytes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    for name, table in tables.items():
        named = table.replace_schema_metadata({NAME: name})
        with pa.ipc.new_stream(sink, named.schema) as stream:
            stream.write_table(named)
    return sink.getvalue()


def read_window(path: Path) -> dict[str, pa.Table]:
    """Tables by name, none of which keeps another in memory.

    Raises StoreError when the file is missing or damaged.
    """
    import pyarrow as pa

    tables = {}
    try:
        with pa.OSFile(str(path)) as file:
            while file.tell() < file.size():
                with pa.ipc.open_stream(file) as stream:
                    name = stream.schema.metadata[NAME].decode()
                    tables[name] = stream.read_all().replace_schema_metadata(None)
    except (OSError, pa.ArrowException, TypeError, KeyError) as error:
        raise StoreError(f"{path} cannot be read ({error})") from error
    if not tables:
        raise StoreError(f"{path} cannot be read (it is empty)")
    return tables
