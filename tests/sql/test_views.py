"""Measured files become views: every row of every file, wherever there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include.results.tables.measured import arrow_columns, register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def written(folder: Path, table: str, files: Iterable[Sequence[Mapping[str, Any]]]) -> Path:
    """The folder of a run with the rows of each file; what a row leaves out is not known."""
    part = folder / "measurements" / table / "experiment=e" / "run=r"
    part.mkdir(parents=True)
    schema = pa.schema(arrow_columns(table)[:-2])
    for number, rows in enumerate(files):
        whole = pa.Table.from_pylist([dict.fromkeys(schema.names) | row for row in rows], schema)
        pq.write_table(whole, part / f"part-{number:03}.parquet")
    return part


@pytest.mark.parametrize("how", ["handed over", "one file", "their files"])
@pytest.mark.parametrize("counts", [[0, 3], [3, 0], [0, 0, 2, 0, 4], [5]])
def test_windows_without_rows_hide_no_others(
    spark: SparkSession, tmp_path: Path, counts: list[int], how: str
) -> None:
    rows = ([{"time_s": float(i)} for i in range(count)] for count in counts)
    part = written(tmp_path, "scaling_activity", rows)
    own = spark.newSession()
    in_files = tmp_path if how == "one file" else None
    paths = {"scaling_activity": [str(part)]}
    register(own, tmp_path, paths, handed=how == "handed over", in_files=in_files)
    assert own.sql("SELECT COUNT(*), COUNT(DISTINCT run) FROM scaling_activity").first() == (
        sum(counts), 1,
    )  # fmt: skip


@pytest.mark.parametrize("handed", [True, False])
def test_a_reading_that_is_no_number_is_in_no_query_missing(
    spark: SparkSession, tmp_path: Path, *, handed: bool
) -> None:
    rows = [{"memory_share": share} for share in (0.5, float("nan"))]
    part = written(tmp_path, "host_utilisation", [rows])
    own = spark.newSession()
    paths = {"host_utilisation": [str(part)]}
    register(own, tmp_path, paths, handed=handed, in_files=tmp_path)
    assert own.sql("SELECT COUNT(*) FROM host_utilisation WHERE memory_share > 1").first() == (1,)


def test_rows_stay_in_the_order_of_their_files(spark: SparkSession, tmp_path: Path) -> None:
    """Sums depend on it, in their last digit."""
    files = ([{"time_s": float(file)}] for file in range(50))
    part = written(tmp_path, "host_utilisation", files)
    register(spark.newSession(), tmp_path, {"host_utilisation": [str(part)]}, in_files=tmp_path)
    (one,) = (tmp_path / "host_utilisation").iterdir()
    assert pq.ParquetFile(one).read()["time_s"].to_pylist() == list(range(50))
