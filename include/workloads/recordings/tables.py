"""CSV and Parquet as columns of cells."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from include.model.errors import SpecError
from include.workloads.recordings.assemble import Sheet
from include.workloads.recordings.csv_cells import places, shortened

_MARK = "﻿"
MOST_ROWS = 5_000_000
_DAY = re.compile(r"\s*\d{4}-\d\d-\d\d")
_OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_csv(name: str, text: str) -> Sheet:
    """The columns of CSV text. Raises SpecError with all problems of its shape at once.

    ``pandas.read_csv`` fills up lines that are too short and says of none where it stands.
    """
    notes = ["a byte order mark at the beginning was left out"] if text.startswith(_MARK) else []
    reader = csv.reader(io.StringIO(text.removeprefix(_MARK), newline=""), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise SpecError(name, [f"line {reader.line_num} cannot be read as CSV: {error}"]) from None
    blank = sum(not row for _, row in rows)
    rows = [(line, row) for line, row in rows if row]
    if blank:
        notes.append(f"{blank} blank lines were left out")
    (_, header), *body = rows
    if _is_prose(text, header, body):
        problem = "is no table; give a CSV with a line of column names and then a line per time"
        raise SpecError(name, [problem])
    header = [cell.strip() for cell in header]
    if header[0] == "" and "index" not in header:  # as pandas writes it
        header[0] = "index"
        notes.append("the first column has no name and was called index")
    if problems := [*_header_problems(header), *_shape_problems(header, body)]:
        raise SpecError(name, shortened(problems))
    lines = [line for line, _ in body]
    cells = pd.DataFrame([row for _, row in body], lines, header, dtype=object)
    return Sheet(cells, "line", tuple(notes))


def _is_prose(text: str, header: list[str], body: list[tuple[int, list[str]]]) -> bool:
    """Whether it is a page or words: lines of several widths, most without a number or time."""
    if text.lstrip(f"{_MARK} \t\r\n").startswith("<"):
        return True
    if all(len(row) == len(header) for _, row in body):
        return False
    numeric = sum(any(_is_number(cell) or _DAY.match(cell) for cell in row) for _, row in body)
    return 2 * numeric < len(body)


def _header_problems(header: list[str]) -> list[str]:
    if header[0].startswith("#"):
        return ["the first line is a comment; begin with a line of column names"]
    if len(header) == 1:
        for mark, plural in _OTHER_DELIMITERS.items():
            if mark in header[0]:
                return [f"columns are separated by {plural}; separate them by commas"]
    if all(_is_number(cell) for cell in header):
        return ["the first line has numbers; write a line of column names above it"]
    problems = _twice(header)
    if unnamed := [i for i, column in enumerate(header, start=1) if not column]:
        problems.append(f"column {unnamed[0]} has no name; give every column one")
    return problems


def _twice(header: Sequence[str]) -> list[str]:
    twice = sorted(column for column, times in Counter(header).items() if column and times > 1)
    if not twice:
        return []
    return [f"columns are there twice: {', '.join(twice)}; give each its own name"]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _shape_problems(header: list[str], body: list[tuple[int, list[str]]]) -> list[str]:
    wrong = [i for i, (_, row) in enumerate(body) if len(row) != len(header)]
    if not wrong:
        return []
    where = places(wrong, lambda i: f"line {body[i][0]}")
    counted = f"{len(body[wrong[0]][1])} cells, but {len(header)} columns"
    what = "write one cell for each, empty where nothing was read, and 3.5 instead of 3,5"
    return [f"{where}: {counted}; {what}"]


def read_parquet(name: str, content: bytes) -> Sheet:
    """The columns of a Parquet file; times of it as ISO text. Raises SpecError."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        file = pa.parquet.ParquetFile(pa.BufferReader(content))
        rows = file.metadata.num_rows
        table: Any = file.read() if rows <= MOST_ROWS else None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise SpecError(name, [f"cannot be read as Parquet ({reason}); write it again"]) from None
    if table is None:
        problem = f"has {rows} rows, more than {MOST_ROWS}; take longer steps"
        raise SpecError(name, [problem])
    if problems := _twice(table.schema.names):
        raise SpecError(name, problems)
    columns, notes = dict[str, pd.Series](), []
    for field in table.schema:
        try:
            cells = _parquet_cells(table[field.name], field.type)
        except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            problem = f"{field.name} cannot be read ({error}); write it as text, or leave it out"
            raise SpecError(name, [problem]) from None
        if cells is None:
            notes.append(f"{field.name} is {field.type}, which is no reading, and was left out")
        else:
            columns[field.name] = cells
    return Sheet(
        pd.DataFrame(columns, range(rows)).set_axis(range(1, rows + 1)), "row", tuple(notes)
    )


def _parquet_cells(column: Any, kind: Any) -> pd.Series | None:
    """Numbers as float, times and text as text; None for a type that can be neither."""
    import pyarrow as pa

    types = pa.types
    cells: pd.Series | None = None
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    if types.is_timestamp(kind) or types.is_date(kind):
        cells = column.to_pandas(date_as_object=True).astype(object)
        cells = cells.map(lambda at: None if pd.isna(at) else at.isoformat()).astype(object)
    elif types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        cells = column.cast(pa.float64(), safe=False).to_pandas()
    elif types.is_string(kind) or types.is_large_string(kind):
        cells = column.to_pandas()
    return cells
