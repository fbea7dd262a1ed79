"""A paper held against measurements, published: tables as CSV, and a page that shows them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from include.measurements.store import write_bytes
from include.reproduction.papers import Found, Paper, Rows

SHOWN_DIGITS = 4


def publish_paper(paper: Paper, found: Found, folder: Path, seeds: str) -> Path:
    """Write ``published/<table>.csv`` and ``published/report.html``; returns the page."""
    published = folder / "published"
    for name, rows in found.tables.items():
        if rows:
            write_bytes(published / f"{name}.csv", _as_csv(rows).encode())
    page = published / "report.html"
    write_bytes(page, render_paper(paper, found, seeds).encode())
    return page


def render_paper(paper: Paper, found: Found, seeds: str) -> str:
    """One self-contained page: which claims hold, then every table, then the errata."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    held = sum(row["holds"] == "yes" for row in found.claims)
    return environment.get_template("papers.html.j2").render(
        paper=paper,
        held=held,
        claims=found.claims,
        tables={name: rows for name, rows in found.tables.items() if name != "claims" and rows},
        errata=found.errata,
        seeds=seeds,
    )


def summary(paper: Paper, found: Found, page: Path) -> str:
    """For the command line: how many claims hold, each that does not, and where the page is."""
    held = [row for row in found.claims if row["holds"] == "yes"]
    lines = [paper.title, f"{len(held)} of {len(found.claims)} claims hold."]
    lines += [
        f"  not: {row['id']}: {row['claim']} ({row.get('measured') or row.get('numbers')})"
        for row in found.claims
        if row["holds"] != "yes"
    ]
    return "\n".join([*lines, f"Page: {page}"])


def shown(value: Any) -> str:
    """One cell for readers: four digits that count, an empty cell for what is not known."""
    if value is None or value == "":
        return ""
    if isinstance(value, float):
        return f"{value:.{SHOWN_DIGITS}g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def _as_csv(rows: Rows) -> str:
    sink = io.StringIO()
    writer = csv.DictWriter(sink, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_plain(row) for row in rows)
    return sink.getvalue()


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: f"{value:.12g}" if isinstance(value, float) else value for name, value in row.items()
    }
