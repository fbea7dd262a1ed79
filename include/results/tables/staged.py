"""Staged tables on disk: one small Parquet file each, in the types of its schema.yaml.

Beside them stands which files of runs they are of, by their SHA-256: runs may be measured again at
any time, and figures be handed on only with the files that they were made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from include.files.whole import digest, write_bytes, write_json
from include.model.errors import StoreError
from include.results.tables.catalogue import schema_of

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
K = TypeVar("K")
T = TypeVar("T")


def gathered(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """Values by their keys, in the order in which they come."""
    values: dict[K, list[T]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def grouped(rows: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """Rows by what they have in common, in the order of that."""
    return {name: list(group) for name, group in groupby(sorted(rows, key=key), key)}


def staged_path(folder: Path, table: str) -> Path:
    """Where one staged table lies."""
    return folder / "staged" / f"{table}.parquet"


def write_table(path: Path, table: str, rows: pa.Table) -> int:
    """Write rows sorted by the key of the table, so that equal rows give equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = staged_schema(table)
    ordered = rows.select(schema.names).cast(schema)
    ordered = ordered.sort_by([(name, "ascending") for name in schema_of(table).key])
    sink = pa.BufferOutputStream()
    pq.write_table(ordered, sink, compression="zstd")
    write_bytes(path, sink.getvalue().to_pybytes())
    return int(ordered.num_rows)


def read_table(path: Path) -> list[Row]:
    """Rows as dictionaries. Raises StoreError when the file is missing or torn."""
    return list(read_arrow(path).to_pylist())


def read_arrow(path: Path, names: Sequence[str] = ()) -> pa.Table:
    """Rows as Arrow: columns ``names``, or all. Raises StoreError for a missing or torn file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path).read(names or None)
    except FileNotFoundError as error:
        raise StoreError(f"{path} is missing. Build the tables first.") from error
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path} cannot be read ({error}). Build the tables again.") from error


def read_staged(folder: Path, table: str) -> list[Row]:
    """Rows of one staged table."""
    return read_table(staged_path(folder, table))


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of a type in schema.yaml."""
    import pyarrow as pa

    return {
        "string": pa.string(),
        "double": pa.float64(),
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
    }[name]


def staged_schema(table: str) -> pa.Schema:
    """The Arrow schema of one staged table."""
    import pyarrow as pa

    columns = schema_of(table).columns
    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])


SOURCES = "sources.json"
KEPT = ("run.json", "manifest.json", "arrivals.csv", "code.json")
"""Of every run. Its manifest has the digests of the measured rows."""
ABSENT = ""
"""Stands for the digest of a file that is not there: earlier versions kept no code.json."""


def sources_of(folder: Path, runs: Iterable[str]) -> dict[str, str]:
    """Digests of the kept files of these runs, by their paths below the experiment's folder."""
    paths = [f"runs/{run}/{name}" for run in runs for name in KEPT]
    return {path: digest_or_absent(folder / path) for path in paths}


def digest_or_absent(path: Path) -> str:
    """SHA-256 of a file, or what says that there is none."""
    return digest(path) if path.is_file() else ABSENT


def keep_sources(folder: Path, digests: dict[str, str]) -> None:
    """Write them beside the staged tables."""
    write_json(folder / "staged" / SOURCES, digests)
