"""The measured tables of some runs, as views that SQL can name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

from include.model.errors import SetupError, StoreError, command, unknown_name
from include.results.tables.staged import arrow_type, read_arrow
from include.runs.measurements.rows import (
    COMPUTED,
    DURATION_COUNT,
    DURATION_SUM,
    ONCE_PER_RUN,
    TABLES,
    UNREAD,
)
from include.runs.measurements.store import RunStore

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyspark.sql import SparkSession

MOST_INTERPRETED_ROWS = 200_000
"""More of them, and compiling the queries pays for itself. A run of two hours has 15,000."""
MOST_ROWS_OF_ONE_COMPILER = 5_000_000
"""More of them, and Java's second compiler pays for itself; on a cluster executors read them."""
_ROWS_AT_ONCE = 200_000
"""Rows that are in memory here, and a row group of the file that they go to."""

_AGAIN = f"{command('run', 'SPEC')} measures it again, where SPEC is the file of the experiment."

_SPARK_TYPE = {
    float: "double",
    float | None: "double",
    int: "bigint",
    str: "string",
    bool: "boolean",
}


def complete_runs(folder: Path, runs: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the ids of complete runs, sorted; all of them if ``runs`` is empty.

    A run is complete when its manifest is there. Raises StoreError, saying what to do, when no run
    is complete, or when one of ``runs`` is unknown or not complete.
    """
    complete = sorted(path.parent.name for path in folder.glob("runs/*/manifest.json"))
    if not complete:
        raise StoreError(
            f"{folder} holds no complete run. Run the experiment to its end first, "
            "or give the folder of an experiment that was."
        )
    for run in runs:
        if run in complete:
            continue
        if (folder / "runs" / run).is_dir():
            raise StoreError(
                f"run {run!r} in {folder} has no manifest.json: it was stopped before its end. "
                "Start it again, which goes on from its last window, or leave it out."
            )
        raise StoreError(unknown_name("run", run, complete))
    return tuple(sorted(set(runs))) or tuple(complete)


def spark_columns(table: str) -> str:
    """The columns of a table that queries read as Spark DDL, partition columns included."""
    row = (TABLES | COMPUTED)[table]
    hints = get_type_hints(row)
    columns = [f"{f.name} {_SPARK_TYPE[hints[f.name]]}" for f in fields(row)]
    return ", ".join([*columns, "experiment string", "run string"])


def arrow_columns(table: str) -> list[tuple[str, pa.DataType]]:
    """The same with their Arrow types."""
    return [(n, arrow_type(t)) for n, t in map(str.split, spark_columns(table).split(", "))]


def measured_rows(store: RunStore, table: str, names: Sequence[str] = ()) -> pa.Table:
    """The rows of one table of a complete run, in the order of its windows: columns ``names``, or
    all. Raises StoreError, naming it, when a file of the run is missing or cannot be read.
    """
    import pyarrow as pa

    where = store.part(table, 0).parent
    parts = [read_arrow(path, names) for path in sorted(where.glob("part-*.parquet"))]
    if not parts:
        raise StoreError(
            f"{where} has no file, though the run is complete. Remove the run "
            f"({command('remove', store.folder, store.run_id)}) and measure it again."
        )
    return pa.concat_tables(parts)


def check_files(folder: Path, run: str) -> dict[str, list[str]]:
    """The folder to read per measured table; none where nothing happened in a run.

    Holds every file against the digest that the run has noted at its end and reads every footer,
    so that a torn file or one of another version is named here and not in the middle of a query.
    Raises StoreError.
    """
    store = RunStore(folder, run)
    for path, problem in store.changed_parts():
        raise StoreError(f"{path} {problem}, though the run is complete. {_AGAIN}")
    parts = {table: store.part(table, 0).parent for table in TABLES}
    return {n: [str(part)] if _are_readable(part, n) else [] for n, part in parts.items()}


def rows_read(folder: Path, runs: Sequence[str]) -> int:
    """How many rows of these runs queries read, as their manifests note it.

    Raises StoreError for a manifest that is damaged.
    """
    stores = (RunStore(folder, run) for run in runs)
    parts = (part for store in stores for part in store.parts())
    return sum(rows for path, rows, _ in parts if path.parents[2].name not in UNREAD)


def register(
    spark: SparkSession,
    folder: Path,
    paths: dict[str, list[str]],
    *,
    handed: bool = False,
    in_files: Path | None = None,
) -> None:
    """Name each measured table as a view; one without files is an empty view.

    Rows are ``handed`` to Spark, or each table becomes one file in the folder ``in_files``, as
    every query would open the files of every run. Without either, executors do. Of tables with some
    rows per run, which nearly every query reads, the rows are always handed.
    """
    for table, parts in paths.items():
        if table in UNREAD:
            continue
        columns = spark_columns(table)
        if not parts or handed or table in ONCE_PER_RUN:
            # In one piece: Spark takes a piece without rows for the end of all.
            rows = _dataset(folder, table, parts).to_table().combine_chunks()
            frame = spark.createDataFrame(rows)
        elif in_files:
            _write_rows(in_files / table, _dataset(folder, table, parts))
            frame = spark.read.schema(columns).parquet(str(in_files / table))
        else:
            base = str(folder / "measurements" / table)
            frame = spark.read.schema(columns).option("basePath", base).parquet(*parts)
        frame.createOrReplaceTempView(table)


def _dataset(folder: Path, table: str, parts: Sequence[str]) -> ds.Dataset:
    """The rows of every file, with the columns that its folders stand for."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    schema = pa.schema(arrow_columns(table))
    by_folders = ds.partitioning(pa.schema(list(schema)[-2:]), flavor="hive")
    return ds.dataset(
        [str(file) for part in parts for file in _files(Path(part))],
        schema=schema,
        format="parquet",
        partitioning=by_folders,
        partition_base_dir=str(folder / "measurements" / table),
    )


def _write_rows(target: Path, rows: ds.Dataset) -> None:
    import pyarrow.dataset as ds

    # Without statistics, which know no NaN: Spark, to which it is the highest, would miss it.
    options = ds.ParquetFileFormat().make_write_options(write_statistics=False)
    groups = {"min_rows_per_group": _ROWS_AT_ONCE, "max_rows_per_group": _ROWS_AT_ONCE}
    try:
        target.mkdir()  # there are no files of no rows
        # In their order, in which Spark adds up numbers.
        ds.write_dataset(
            rows, target, format="parquet", file_options=options, preserve_order=True, **groups
        )
    except OSError as error:
        how = "free some space there, or name another folder with TMPDIR"
        raise SetupError(f"{target} cannot be written ({error}); {how}") from error


def _files(part: Path) -> list[Path]:
    return sorted(part.glob("*.parquet"))


def _require_may_be_missing(part: Path, table: str) -> None:
    of_all = sorted(folder.name for folder in part.parents[1].glob("experiment=*"))
    if table in ("run", "operator", "price", DURATION_COUNT, DURATION_SUM):
        if of_all and part.parent.name not in of_all:
            name = of_all[0].partition("=")[2]
            raise StoreError(f"{part.parents[3]} is the experiment {name}: call the folder so")
        raise StoreError(f"{part} holds no file, though the run is complete. {_AGAIN}")


def _are_readable(part: Path, table: str) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = _files(part)
    expected = [field.name for field in fields(TABLES[table])]
    for file in files:
        try:
            footer = pq.read_metadata(file)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{file} cannot be read ({error}). {_AGAIN}") from error
        names = footer.schema.names
        if names != expected:
            raise StoreError(
                f"{file} has the columns {', '.join(names)}; this version writes "
                f"{', '.join(expected)}. Run it again, or report with the version that wrote it."
            )
        if table == "run" and footer.num_rows != 1:
            raise StoreError(f"{file} has {footer.num_rows} rows instead of one. {_AGAIN}")
    if not files:
        _require_may_be_missing(part, table)
    return bool(files)
