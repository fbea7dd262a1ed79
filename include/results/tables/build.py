"""Measured Parquet to staged tables: one Spark application."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from include.files.whole import new_folder, swap_in, write_bytes
from include.model.compliance import LEVELS
from include.model.errors import StoreError
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED, SQL_ROOT, is_by_run, schema_of
from include.results.tables.covers import read_covers, read_parts
from include.results.tables.demand import demand_rows
from include.results.tables.measured import (
    MOST_INTERPRETED_ROWS,
    MOST_ROWS_OF_ONE_COMPILER,
    arrow_columns,
    check_files,
    complete_runs,
    register,
    rows_read,
)
from include.results.tables.quarantine import (
    Quarantine,
    read_quarantine,
    sentences,
    unreadable,
    write_quarantine,
)
from include.results.tables.same_inputs import require_each_once, require_same_files
from include.results.tables.staged import (
    SOURCES,
    digest_or_absent,
    keep_sources,
    read_arrow,
    read_staged,
    sources_of,
    staged_path,
    write_table,
)
from include.results.templates import templates_in
from include.runs.measurements.rows import COST_PART, COVER, SOURCE_DEMAND
from include.runs.measurements.summaries import BINS_PER_E
from include.runs.spark.session import is_local, require_java, spark_session
from include.testbeds import TESTBEDS
from include.testbeds.flavors import FLAVORS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def build_tables(
    folder: Path, runs: Sequence[str] = (), *, master: str | None = "local[*]"
) -> dict[str, int]:
    """Write ``folder/staged/<table>.parquet`` for every published table and the input checks.

    ``folder`` is the folder of the experiment, called like it; ``runs`` are run ids, none meaning
    every complete run; ``master`` is a Spark master, None the one that spark-submit has chosen.
    Returns the rows of each table. All queries succeed before the first file is replaced.
    Runs whose files are torn or missing are left out; ``staged/quarantine.json`` says why.
    ``staged/sources.json`` says by their SHA-256 which files of runs the tables are of.
    Without ``folder/bounds.json`` (covers.py) nothing is known of the cover, the regret and the
    parts of the costs.
    Raises StoreError when there is no run to read, one is measured again meanwhile, two measure the
    same, or runs of one case are of other files; SetupError without Java 17.
    """
    require_java()
    chosen = complete_runs(folder, runs)
    sources = sources_of(folder, chosen)
    paths, demand, torn = _readable(folder, chosen)
    rows = rows_read(folder, [run for run in chosen if run not in torn])
    few, many = rows <= MOST_INTERPRETED_ROWS, rows > MOST_ROWS_OF_ONE_COMPILER
    computed = {
        COVER: read_covers(folder),
        COST_PART: read_parts(folder),
        SOURCE_DEMAND: demand,
    }
    with (
        TemporaryDirectory(prefix="tidebench-rows-") as rows_here,
        spark_session(master, many=many, small=few) as spark,
    ):
        here = is_local(spark.sparkContext.master)  # a cluster need not see this folder
        in_files = Path(rows_here) if here else None
        register(spark, folder, paths, handed=few or not (here or many), in_files=in_files)
        for name, rows_of_table in computed.items():
            spark.createDataFrame(rows_of_table).createOrReplaceTempView(name)
        results = _queried(spark, at_once=1 if many else 2)
    _require_unchanged(folder, sources)
    measured = results["runs"].to_pylist()
    require_same_files(folder, measured)
    require_each_once(folder, measured)
    counts = {
        table: write_table(staged_path(folder, table), table, rows)
        for table, rows in results.items()
    }
    write_quarantine(folder / "staged", torn)
    keep_sources(folder, sources)
    return counts


def _require_unchanged(folder: Path, sources: Mapping[str, str]) -> None:
    changed = {Path(path).parts[1] for path, sha in sources.items()
               if digest_or_absent(folder / path) != sha}  # fmt: skip
    if changed:
        raise StoreError(
            f"measured again while tables were built of them: {', '.join(sorted(changed))}; "
            "report again once that is through"
        )


def leave_out(folder: Path, failed: Quarantine) -> None:
    """Take runs out of every staged table of an experiment, and store why in the quarantine.

    In tables by run the rows of other runs stay as they are. Others are queried anew from the rows
    that are left, as are `metrics`, in which a run may stand for the BTU of another one, unless the
    measured rows are gone. The bytes are those of tables that were built without these runs. All
    files are replaced at once. Raises SetupError without Java.
    """
    staged = folder / "staged"
    runs = [row["run"] for row in read_staged(folder, "runs") if row["run"] not in failed]
    paths: dict[str, list[str]] = {}
    with suppress(StoreError):
        paths, _, _ = _readable(folder, runs)
    measured = {table: parts for table, parts in paths.items() if table in _words("metrics")}
    with new_folder(staged) as draft, spark_session("local[*]", small=True) as spark:
        register(spark, folder, measured, handed=True)
        for table in (INPUT_CHECKS, *PUBLISHED):
            if is_by_run(table) and not (table == "metrics" and measured):
                rows = _rows_of_other_runs(read_arrow(staged_path(folder, table)), failed)
            else:
                rows = run_query(spark, table).toArrow()
            spark.createDataFrame(rows).createOrReplaceTempView(table)
            write_table(draft / staged_path(folder, table).name, table, rows)
        write_quarantine(draft, {**read_quarantine(folder), **failed})
        if (sources := staged / SOURCES).is_file():
            write_bytes(draft / SOURCES, sources.read_bytes())
        swap_in(draft, staged)


def _rows_of_other_runs(rows: pa.Table, runs: Quarantine) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    return rows.filter(pc.invert(pc.is_in(rows["run"], pa.array(list(runs), pa.string()))))


def _readable(
    folder: Path, runs: Sequence[str]
) -> tuple[dict[str, list[str]], pa.Table, Quarantine]:
    """Folders to read per measured table, the demand, and the runs whose files cannot be read."""
    import pyarrow as pa

    paths: dict[str, list[str]] = {}
    demand: list[dict[str, Any]] = []
    torn = {}
    for run in runs:
        try:
            demand += demand_rows(folder, run)
            for table, parts in check_files(folder, run).items():
                paths.setdefault(table, []).extend(parts)
        except StoreError as error:
            torn[run] = (unreadable(error),)
    if len(torn) == len(runs):
        raise StoreError(
            "\n".join(["no run can be read, so there is nothing to build", *sentences(torn)])
        )
    return paths, pa.Table.from_pylist(demand, pa.schema(arrow_columns(SOURCE_DEMAND))), torn


def _queried(spark: SparkSession, at_once: int) -> dict[str, pa.Table]:
    """Every table once, ``at_once`` at a time; later queries read the finished rows of earlier."""
    done: dict[str, Future[pa.Table | None]] = {}
    with ThreadPoolExecutor(at_once) as threads:
        for step in STEPS:
            needed = [done[earlier] for earlier in read_by(step) if earlier in done]
            done[step] = threads.submit(_finished, spark, step, needed)
        rows = {step: future.result() for step, future in done.items()}
    return {step: table for step, table in rows.items() if table is not None}


def _finished(
    spark: SparkSession, step: str, needed: Sequence[Future[pa.Table | None]]
) -> pa.Table | None:
    """The rows of one step, also as a view, once those it reads are there; None for a shared."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    for earlier in needed:
        earlier.result()
    try:
        if step in SHARED:
            share(spark, step)
            return None
        rows = run_query(spark, step).toArrow()
    except (Py4JError, PySparkException) as error:
        raise StoreError(f"table {step} could not be built: {_reason(error)}") from error
    if is_read(step):
        spark.createDataFrame(rows).createOrReplaceTempView(step)
    return rows


def _reason(error: Exception) -> str:
    """What Java says of a query, of a trace the first cause."""
    causes = re.findall(r"^Caused by: (.+)", str(error), re.MULTILINE)
    return str(causes[-1] if causes else error)


SHARED: tuple[str, ...] = ("series", "readings", "histogram", "backlog")
"""Intermediate results that several tables read, each computed once."""

STEPS: tuple[str, ...] = (*SHARED, INPUT_CHECKS, *PUBLISHED)
"""Every query of a report, in the order in which it may read others; the last are short."""

VALUES: Mapping[str, Any] = MappingProxyType(
    {**{f"{level}_factor": factor for level, factor in LEVELS}, "bins_per_e": BINS_PER_E}
)
"""Limits of the compliance levels as multiples of o_slo, and the width of the histogram's bins."""

_SHAPE = templates_in(SQL_ROOT, escape=False)


@cache
def query_of(table: str) -> str:
    """The text of one query, with ``:name`` where a value goes."""
    return _SHAPE.get_template(f"tables/{table}/query.sql.j2").render(
        levels=[level for level, _ in LEVELS],
        engines=[name for name, testbed in TESTBEDS.items() if "rescale" in testbed.measures],
        outcomes=schema_of("outcomes").columns,
        usable_mb={name: flavor.capacity.memory_mb for name, flavor in FLAVORS.items()},
    )


@cache
def read_by(table: str) -> tuple[str, ...]:
    """The steps that a query may read: those before it that its text names."""
    return tuple(step for step in STEPS[: STEPS.index(table)] if step in _words(table))


def _words(table: str) -> set[str]:
    return set(re.findall(r"\w+", query_of(table)))


def is_read(table: str) -> bool:
    """Whether a later query may read this one, so that it has to be a view."""
    return any(table in read_by(later) for later in STEPS[STEPS.index(table) + 1 :])


def run_query(spark: SparkSession, table: str) -> DataFrame:
    """The rows of one table, from the views that its query names."""
    return spark.sql(query_of(table), args=dict(VALUES))


def share(spark: SparkSession, step: str) -> DataFrame:
    """Compute once what several tables read, on the executors, and name it as a view.

    A checkpoint, not a cache: Spark looks a cached plan up by its shape, and computes it again,
    unnoticed, where it does not recognise a hint in it.
    """
    kept = run_query(spark, step).localCheckpoint()
    kept.createOrReplaceTempView(step)
    return kept
