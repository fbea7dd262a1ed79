"""What is published: the tables in reading order, and their columns from schema.yaml.

A table is a folder ``sql/tables/<table>/`` with the query, the schema and the checks. The schema
is the truth about the columns: staged files are cast to it, documents and the results database
are made from it, and a test compares it with what the query returns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from include.files.plain_yaml import read_yaml

SQL_ROOT = Path(__file__).parents[3] / "sql"

PUBLISHED: tuple[str, ...] = (
    "runs",
    "compliance",
    "cost",
    "cost_parts",
    "time_to_adapt",
    "scaling",
    "scaling_total",
    "timeline",
    "utilisation",
    "elasticity",
    "decisions",
    "rescales",
    "advisors",
    "advisors_timeline",
    "metrics",
    "means",
    "cells",
    "cost_parts_means",
    "comparison",
    "outcomes",
    "tournament",
)
"""Published tables. To add one: write its folder in sql/tables, and the line here."""

INPUT_CHECKS = "input_checks"
"""Staged beside them for the gate, and never published: one row per run and check."""

ADVICE_RANKING = "advice_ranking"
"""The table of `advise`, built and checked like the others, over a recording in place of runs."""

DOCUMENTED = (*PUBLISHED, INPUT_CHECKS, ADVICE_RANKING)
"""Tables that `tidebench columns` explains and docs/metrics.md lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column. ``formula`` says how it follows from what was measured or from other columns;
    ``decimals`` rounds documents for readers, Parquet keeps every digit."""

    name: str
    type: str
    unit: str
    description: str
    formula: str = ""
    decimals: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """Columns of one table; ``key`` names the columns that identify a row."""

    name: str
    description: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def summary(self) -> str:
        """The first sentence of the description; "Figs. 8-11" ends none."""
        return re.split(r"(?<=\.) (?=[A-Z`])", self.description, maxsplit=1)[0]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        return self.columns[self.column_names.index(name)]


@cache
def schema_of(table: str) -> TableSchema:
    """The schema of one table. A column given as a name alone is in sql/tables/columns.yaml."""
    content = read_sql_yaml(table, "schema")
    shared = read_sql_yaml(".", "columns")
    columns = tuple(
        Column(name=entry, **shared[entry]) if isinstance(entry, str) else Column(**entry)
        for entry in content["columns"]
    )
    return TableSchema(
        name=table,
        description=" ".join(content["description"].split()),
        key=tuple(content["key"]),
        columns=columns,
    )


def is_by_run(table: str) -> bool:
    """Whether every row of a table is about one run; rows of the others are about several."""
    return "run" in schema_of(table).column_names


@cache
def read_sql_yaml(folder: str, name: str) -> Any:
    """The content of ``sql/tables/<folder>/<name>.yaml``; nobody changes it."""
    path = SQL_ROOT / "tables" / folder / f"{name}.yaml"
    return read_yaml(path.read_text(encoding="utf-8"))
