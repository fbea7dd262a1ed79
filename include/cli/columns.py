"""The command `tidebench columns`."""

from __future__ import annotations

from textwrap import fill, indent
from typing import Annotated

import typer

from include.model.errors import SpecError, unknown_name

WIDTH = 96
"""Characters of a line."""


def columns(
    table: Annotated[str, typer.Argument(help="The table; without one, all are listed.")] = "",
) -> None:
    """Explain the columns of a published table: unit, meaning, formula."""
    from include.results.tables.catalogue import DOCUMENTED, schema_of

    if not table:
        for name in DOCUMENTED:
            typer.echo(f"{name:<18} {schema_of(name).summary.rstrip('.')}")
        return
    if table not in DOCUMENTED:
        raise SpecError("columns", [unknown_name("table", table, DOCUMENTED)])
    schema = schema_of(table)
    typer.echo(f"{fill(schema.description, WIDTH)}\nOne row per {', '.join(schema.key)}.")
    for column in schema.columns:
        typer.echo(f"\n{column.name} [{column.unit}]")
        for text in (column.description, f"= {column.formula}"):
            typer.echo(indent(fill(text, WIDTH - 4), "    "))
