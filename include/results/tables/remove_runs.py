"""Remove runs from staged tables without rebuilding them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from include.files.whole import new_folder, swap_in
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED, is_by_run, schema_of
from include.results.tables.quarantine import Quarantine, read_quarantine, write_quarantine
from include.results.tables.queries import run_query
from include.results.tables.staged import read_arrow, staged_path, write_table
from include.runs.spark.session import spark_session

if TYPE_CHECKING:
    import pyarrow as pa


def leave_out(folder: Path, failed: Quarantine) -> None:
    """Take runs out of every staged table of an experiment, and store why in the quarantine.

    In tables by run the rows of other runs stay as they are. Tables over several runs are queried
    anew from the rows that are left. The bytes are those of tables that were built without these
    runs. All files are replaced at once. Raises SetupError without Java.
    """
    staged = folder / "staged"
    with new_folder(staged) as draft, spark_session("local[*]", small=True) as spark:
        for table in (INPUT_CHECKS, *PUBLISHED):
            if is_by_run(table):
                rows = _rows_of_other_runs(read_arrow(staged_path(folder, table)), failed)
            else:
                rows = run_query(spark, table).toArrow()
            spark.createDataFrame(rows).createOrReplaceTempView(table)
            write_table(draft / staged_path(folder, table).name, rows, schema_of(table))
        write_quarantine(draft, {**read_quarantine(folder), **failed})
        swap_in(draft, staged)


def _rows_of_other_runs(rows: pa.Table, runs: Quarantine) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    return rows.filter(pc.invert(pc.is_in(rows["run"], pa.array(list(runs), pa.string()))))
