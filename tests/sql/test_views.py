"""Measured files become views: every row of every file, wherever there are none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include.results.tables.measured import arrow_columns, register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("how", ["handed over", "one file", "their files"])
@pytest.mark.parametrize("counts", [[0, 3], [3, 0], [0, 0, 2, 0, 4], [5]])
def test_windows_without_rows_hide_no_others(
    spark: SparkSession, tmp_path: Path, counts: list[int], how: str
) -> None:
    part = tmp_path / "measurements" / "scaling_activity" / "experiment=e" / "run=r"
    part.mkdir(parents=True)
    kinds = dict(arrow_columns("scaling_activity"))
    schema = pa.schema([(n, kind) for n, kind in kinds.items() if n not in ("experiment", "run")])
    for window, count in enumerate(counts):
        rows = [
            {"time_s": float(i), "activity": "upscaling", "operator": "O1", "instance": f"O1-{i}",
             "host": "h"}
            for i in range(count)
        ]  # fmt: skip
        pq.write_table(pa.Table.from_pylist(rows, schema), part / f"part-{window:03}.parquet")
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
    part = tmp_path / "measurements" / "host_utilisation" / "experiment=e" / "run=r"
    part.mkdir(parents=True)
    schema = pa.schema(arrow_columns("host_utilisation")[:-2])
    rows = [dict.fromkeys(schema.names) | {"memory_share": share} for share in (0.5, float("nan"))]
    pq.write_table(pa.Table.from_pylist(rows, schema), part / "part-000.parquet")
    own = spark.newSession()
    register(
        own, tmp_path, {"host_utilisation": [str(part)]}, handed=handed, in_files=tmp_path
    )  # fmt: skip
    assert own.sql("SELECT COUNT(*) FROM host_utilisation WHERE memory_share > 1").first() == (1,)


def test_rows_stay_in_the_order_of_their_files(spark: SparkSession, tmp_path: Path) -> None:
    """Sums depend on it, in their last digit."""
    part = tmp_path / "measurements" / "host_utilisation" / "experiment=e" / "run=r"
    part.mkdir(parents=True)
    schema = pa.schema(arrow_columns("host_utilisation")[:-2])
    for file in range(50):
        rows = [dict.fromkeys(schema.names) | {"time_s": float(file)}]
        pq.write_table(pa.Table.from_pylist(rows, schema), part / f"part-{file:03}.parquet")
    register(spark.newSession(), tmp_path, {"host_utilisation": [str(part)]}, in_files=tmp_path)
    (one,) = (tmp_path / "host_utilisation").iterdir()
    assert pq.ParquetFile(one).read()["time_s"].to_pylist() == list(range(50))
