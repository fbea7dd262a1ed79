"""The tables that `make demo` prints. Reads the published Parquet files and nothing heavier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from include.reports.comparison import Comparison, compare_compliance, compare_cost
from include.tables.staged import read_table

_HEADINGS = ("", "measured", "published", "difference")


def summary(folder: Path) -> str:
    """Compliance and cost of every run beside the published figures, as plain text.

    Price books that neither the run was controlled with nor the paper used are left to the
    page. Ends with where the page and the Data Docs lie. Raises StoreError when nothing has been
    published in ``folder``, the folder of an experiment.
    """
    target = folder / "published"
    runs = read_table(target / "runs.parquet")
    compliance = list(compare_compliance(read_table(target / "compliance.parquet")))
    cost = list(compare_cost(read_table(target / "cost.parquet")))
    lines: list[str] = []
    for run in runs:
        lines += [_title(run), ""]
        for heading, rows in (
            ("Compliance, percent of items", compliance),
            ("Cost, in units of the paper", cost),
        ):
            own = [row for row in rows if row.run == run["run"] and (row.own or row.where)]
            lines += [*_table(heading, own), ""]
    where = sorted({row.where for row in (*compliance, *cost) if row.where})
    if where:
        lines += [f"Published: PeerJ CS 141, {' and '.join(where)}, means of three runs.", ""]
    lines += [f"Page:      {target / 'report.html'}"]
    lines += [f"Data Docs: {folder / 'data_docs' / 'index.html'}"]
    return "\n".join(lines)


def _title(run: dict[str, Any]) -> str:
    return (
        f"{run['run']}: controller {run['controller']}, {run['pattern']}, "
        f"BTU {run['btu_min']:g} min, {run['duration_min']:g} min, seed {run['seed']}"
    )


def _table(heading: str, rows: Sequence[Comparison]) -> list[str]:
    cells = [(heading, *_HEADINGS[1:])]
    for row in rows:
        decimals = 1 if row.unit == "percent" else 2
        cells.append(
            (
                f"  {row.label}",
                f"{row.measured:.{decimals}f}",
                "-" if row.published is None else f"{row.published:.{decimals}f}",
                "-" if row.difference is None else f"{row.difference:+.{decimals}f}",
            )
        )
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADINGS))]
    widths[0] = max(widths[0], 44)
    return [
        line[0].ljust(widths[0])
        + "".join(
            "  " + text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True)
        )
        for line in cells
    ]
