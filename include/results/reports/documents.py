"""One table as CSV, Markdown and LaTeX, rounded for readers as its schema says; keys are exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from include.files.whole import csv_text
from include.model.compliance import in_words
from include.results.tables.catalogue import Column, TableSchema
from include.results.tables.staged import Rows


def cell_text(value: Any, column: Column) -> str:
    """One cell as text: rounded, booleans as yes or no, a missing value empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if column.decimals is None:
            return repr(value + 0.0)  # no negative zero
        text = f"{value:.{column.decimals}f}"
        return text.removeprefix("-") if float(text) == 0 else text
    return str(value)


def heading(column: Column) -> str:
    """A column's name on a page, where milliseconds are seconds."""
    words = in_words(column.name)
    return f"{words.removesuffix(' ms')} s" if column.unit == "ms" else words


def page_text(value: Any, column: Column) -> str:
    """The same as `cell_text` below `heading`."""
    if value is None or column.unit != "ms":
        return cell_text(value, column)
    seconds = value / 1000
    return f"{seconds:,.3f}" if seconds < 10 else f"{seconds:,.1f}"


def as_csv(rows: Rows, schema: TableSchema) -> str:
    """Comma-separated values with a header."""
    return csv_text(schema.column_names, _cells(rows, schema))


def as_markdown(rows: Rows, schema: TableSchema) -> str:
    """What the table is, the rows, and what each column means."""
    lines = [f"# {schema.name}", "", schema.description, ""]
    lines.append(_bars(schema.column_names))
    lines.append(_bars("---:" if _is_number(c) else "---" for c in schema.columns))
    lines += map(_bars, _cells(rows, schema, _markdown_text))
    lines += ["", _bars(("column", "unit", "description")), _bars(("---",) * 3)]
    lines += [_bars((c.name, c.unit, _markdown_text(c.description))) for c in schema.columns]
    return "\n".join(lines) + "\n"


def as_latex(rows: Rows, schema: TableSchema) -> str:
    """A booktabs table, ready for ``\\input``."""
    align = "".join("r" if _is_number(column) else "l" for column in schema.columns)
    lines = [
        f"% {schema.name}: needs \\usepackage{{booktabs}}",
        f"\\begin{{tabular}}{{{align}}}",
        "\\toprule",
        _latex_row(map(_latex_text, schema.column_names)),
        "\\midrule",
        *map(_latex_row, _cells(rows, schema, _latex_text)),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


WRITERS: Mapping[str, Callable[[Rows, TableSchema], str]] = {
    "csv": as_csv,
    "md": as_markdown,
    "tex": as_latex,
}
"""Text formats by file suffix. To add one: write the function and the line."""
FORMATS: Mapping[str, str] = {
    "parquet": "Parquet", "csv": "CSV", "md": "Markdown", "tex": "LaTeX",
}  # fmt: skip
"""What a published table can be downloaded as, by suffix."""
MOST_TYPESET = 10_000
"""Rows of a table that somebody may read or print; one of more is for programs, as CSV."""


def suffixes(rows: int) -> list[str]:
    """The text formats of a table of so many rows."""
    return [suffix for suffix in WRITERS if suffix == "csv" or rows <= MOST_TYPESET]


def _cells(
    rows: Rows, schema: TableSchema, written: Callable[[str], str] = str
) -> Iterator[tuple[str, ...]]:
    """Rows of cells. A column of many rows has few different values; each is written once."""
    columns = []
    for column in schema.columns:
        text_of = _key_text if column.name in schema.key else cell_text
        values = [row[column.name] for row in rows]
        texts = {value: written(text_of(value, column)) for value in set(values)}
        columns.append([texts[value] for value in values])
    return zip(*columns, strict=True)


def _key_text(value: Any, column: Column) -> str:
    """The same as `cell_text`, with all digits where rounding would make it another key."""
    text = cell_text(value, column)
    if isinstance(value, float) and float(text) != (exact := round(value, 9)):
        return repr(exact)
    return text


def _is_number(column: Column) -> bool:
    return column.type in ("double", "bigint")


def _bars(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_text(text: str) -> str:
    return text.replace("|", "\\|")


_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "\\": "\\textbackslash{}"}
)


def _latex_text(text: str) -> str:
    return text.translate(_LATEX)


def _latex_row(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
