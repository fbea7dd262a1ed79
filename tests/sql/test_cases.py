"""Every table on small rows: a case is a folder of inputs and what must come out.

``<table>/<case>/<measured table>.yaml`` has rows; a column left out is 0, false, empty or USUAL.
``expect.yaml`` has every row that must come
out, in the order of the table's key, with the columns that the case is about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from include.results.tables.build import STEPS, read_by, run_query
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED, schema_of
from include.results.tables.measured import spark_columns
from include.runs.measurements.rows import COMPUTED, SAMPLES, TABLES
from include.runs.measurements.summaries import summarised
from include.testbeds.columns import Coded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
CASES = sorted(path.parent.relative_to(HERE) for path in HERE.glob("*/*/expect.yaml"))
READ = TABLES | COMPUTED
EMPTY = {"float": 0.0, "float | None": None, "int": 0, "str": "", "bool": False}
USUAL = {"run": {"monitor_every_s": 15.0, "pays_by_btu": True}}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(spark: SparkSession, case: Path) -> None:
    table, folder = case.parts[0], HERE / case
    rows_of = {name: _rows(folder / f"{name}.yaml") for name in READ}
    for name, rows in (rows_of | _counted(rows_of)).items():
        view(spark, name, rows)
    got = built(spark, table)
    expected = _rows(folder / "expect.yaml")
    rows = [row.asDict() for row in got.sort(*schema_of(table).key).collect()]
    columns = expected[0] if expected else {}
    assert [{name: row[name] for name in columns} for row in rows] == expected


@pytest.fixture(scope="module")
def of_nothing(spark: SparkSession) -> dict[str, list[tuple[str, str]]]:
    """Columns and types of every table, each analysed once."""
    for name in READ:
        view(spark, name, [])
    tables = _viewed(spark, STEPS)
    return {
        table: [(field.name, field.dataType.simpleString()) for field in frame.schema]
        for table, frame in tables.items()
    }


@pytest.mark.parametrize("table", [*PUBLISHED, INPUT_CHECKS])
def test_schema_is_what_the_query_returns(
    of_nothing: dict[str, list[tuple[str, str]]], table: str
) -> None:
    assert of_nothing[table] == [(column.name, column.type) for column in schema_of(table).columns]


@pytest.mark.parametrize("table", [*PUBLISHED, INPUT_CHECKS])
def test_table_has_two_cases(table: str) -> None:
    assert len([case for case in CASES if case.parts[0] == table]) >= 2


def _counted(rows_of: dict[str, Any]) -> dict[str, Any]:
    """What is counted of the samples of every run, from samples of a case."""
    counted: dict[str, list[dict[str, Any]]] = {}
    for run in rows_of["run"] or [{}]:
        name = run.get("run", "r")
        of_run = {
            table: [row for row in rows if row.get("run", "r") == name]
            for table, rows in rows_of.items()
            if table in (SAMPLES, "operator")
        }
        empty = {"operator": "", "slo_ms": 0.0}
        of_run["operator"] = [{**empty, **row} for row in of_run["operator"]]
        of_run["run"] = [{"duration_s": 0.0, **USUAL["run"], **run}]
        for table, rows in _summaries_of(of_run).items():
            counted.setdefault(table, []).extend({**row, "run": name} for row in rows)
    return counted


def _summaries_of(tables: dict[str, Any]) -> dict[str, Any]:
    """What the platform counts of the samples of one run."""
    samples = tables[SAMPLES]
    if not samples:
        return {}
    names = tuple({row["operator"]: None for row in samples})
    columns: dict[str, Any] = {
        name: np.array([row.get(name, 0.0) for row in samples], dtype=float)
        for name in ("time_s", "duration_ms", "wait_ms", "age_ms")
    }
    codes = np.array([names.index(row["operator"]) for row in samples])
    counted = summarised(
        {**columns, "operator": Coded(codes, names)},
        {row["operator"]: row["slo_ms"] for row in tables["operator"]},
        duration_s=tables["run"][0]["duration_s"],
        monitor_every_s=tables["run"][0]["monitor_every_s"],
    )
    return {table: _rows_of(columns) for table, columns in counted.items()}


def _rows_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    codes, operators = columns["operator"]
    columns = {**columns, "operator": [operators[code] for code in codes]}
    plain = [np.asarray(values).tolist() for values in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]


def _rows(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else []


def view(spark: SparkSession, name: str, rows: list[dict[str, Any]]) -> None:
    empty = {field.name: EMPTY[str(field.type)] for field in fields(READ[name])}
    empty |= {"experiment": "e", "run": "r", **USUAL.get(name, {})}
    unknown = {column for row in rows for column in row} - set(empty)
    assert not unknown, f"{name}.yaml has columns that the table does not have: {unknown}"
    whole = [{**empty, **row} for row in rows]
    columns = spark_columns(name)
    schema = to_arrow_schema(StructType.fromDDL(columns))
    spark.createDataFrame(pa.Table.from_pylist(whole, schema)).createOrReplaceTempView(name)


def built(spark: SparkSession, table: str) -> DataFrame:
    """The table, after those that it reads, and those that they read."""
    return _viewed(spark, [*_needed(table), table])[table]


def _needed(table: str) -> list[str]:
    named = read_by(table) if table in STEPS else ()
    needed = {*named, *(one for step in named for one in _needed(step))}
    return [step for step in STEPS if step in needed]


def _viewed(spark: SparkSession, steps: Iterable[str]) -> dict[str, DataFrame]:
    """The steps, each a view for those after it."""
    frames = {}
    for step in steps:
        frames[step] = run_query(spark, step)
        frames[step].createOrReplaceTempView(step)
    return frames
