"""The list of tables in docs/metrics.md; ``make dictionary`` writes it below its heading."""

from __future__ import annotations

import argparse
from pathlib import Path

from include.files.whole import write_bytes
from include.results.tables.catalogue import DOCUMENTED, schema_of

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
HEADING = "## Tables\n\n"


def with_tables(page: str) -> str:
    """The page with the tables as they are, in the order in which they are published."""
    rows = (
        f'| <a id="{name}"></a>`{name}` | {schema.summary.rstrip(".")} | {", ".join(schema.key)} |'
        for name, schema in ((name, schema_of(name)) for name in DOCUMENTED)
    )
    tables = "\n".join(("| table | content | one row per |", "|---|---|---|", *rows, ""))
    return page.partition(HEADING)[0] + HEADING + tables


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    write_bytes(PAGE, with_tables(PAGE.read_text(encoding="utf-8")).encode())
