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


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("counts", [[0, 3], [3, 0], [0, 0, 2, 0, 4], [5]])
def test_windows_without_rows_hide_no_others(
    spark: SparkSession, tmp_path: Path, counts: list[int], *, in_files: bool
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
    register(own, {"scaling_activity": [str(part)]}, tmp_path if in_files else None)
    assert own.sql("SELECT COUNT(*), COUNT(DISTINCT run) FROM scaling_activity").first() == (
        sum(counts), 1,
    )  # fmt: skip
