"""docs/metrics.md from the schemas: ``python -m include.tables.dictionary > docs/metrics.md``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from include.tables.catalogue import INPUT_CHECKS, PUBLISHED, Column, schema_of

_HEAD = """\
# Every column of every table

Made from `sql/tables/*/schema.yaml`; `make dictionary` makes it again, and a test fails when it is
not current. Names in formulas are columns: of the same table where nothing else is said, of another
one where it is named, else of the measured rows (`include/measurements/rows.py`). Percentiles and
means are over rows of one run; a missing value means that there was nothing to count.
"""


def dictionary() -> str:
    """The page as Markdown, tables in the order in which they are published."""
    return "\n".join([_HEAD, *(line for t in (*PUBLISHED, INPUT_CHECKS) for line in _table(t))])


def _table(name: str) -> Iterator[str]:
    schema = schema_of(name)
    yield from (
        f"## {name}",
        "",
        schema.description,
        "",
        f"One row per {', '.join(schema.key)}.",
        "",
    )
    yield from ("| column | unit | what it is | formula |", "|---|---|---|---|")
    yield from map(_line, schema.columns)
    yield ""


def _line(column: Column) -> str:
    cells = (f"`{column.name}`", column.unit, column.description, column.formula)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.stdout.write(dictionary())
