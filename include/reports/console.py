"""The tables that `make demo` prints. Reads the published Parquet files and nothing heavier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from include.reports.comparison import (
    Comparison,
    Reference,
    compare_compliance,
    compare_cost,
    nothing_printed,
    printed_for,
)
from include.reports.names import named
from include.reports.tournament import METRICS, Match, is_tournament, matches
from include.tables.quarantine import read_quarantine, sentences
from include.tables.staged import read_table

_HEADINGS = ("", "measured", "published", "difference")
_OF_A_TOURNAMENT = (
    "resource_cost", "relaxed_compliance_percent", "latency_p95_ms", "scaling_events",
    "utility_percent",
)  # fmt: skip


def summary(folder: Path, reference: Reference = nothing_printed) -> str:
    """Compliance and cost of every run beside what ``reference`` knows, as plain text; of a
    tournament the means of every controller on every workload.

    Price books that neither the run was controlled with nor the paper used are left to the
    page. Ends with the runs that were left out, and where the page and the Data Docs lie. Raises
    StoreError when nothing has been published in ``folder``, the folder of an experiment.
    """
    target = folder / "published"
    runs = read_table(target / "runs.parquet")
    ends_with = [
        *sentences(read_quarantine(folder)),
        f"Page:      {target / 'report.html'}",
        f"Data Docs: {folder / 'data_docs' / 'index.html'}",
    ]
    if is_tournament(runs):
        found = matches(read_table(target / "tournament.parquet"))
        return "\n".join([*(line for match in found for line in _match(match)), *ends_with])
    printed = printed_for(runs, reference)
    compliance = list(compare_compliance(read_table(target / "compliance.parquet"), printed))
    cost = list(compare_cost(read_table(target / "cost.parquet"), printed))
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
    return "\n".join([*lines, *ends_with])


def _match(match: Match) -> list[str]:
    """One workload of a tournament: a line per controller, with what the figure shows and more."""
    metrics = [name for name in _OF_A_TOURNAMENT if name in match.metrics]
    cells = [(match.title, *(METRICS[name][0] for name in metrics))]
    for one in match.standings:
        found = (one.cells.get(name) for name in metrics)
        cells.append((f"  {one.name}", *("-" if cell is None else str(cell) for cell in found)))
    return [*_aligned(cells), ""]


def _title(run: dict[str, Any]) -> str:
    return (
        f"{run['run']}: controller {named(run)}, {run['pattern']}, "
        f"BTU {run['btu_min']:g} min, {run['duration_min']:g} min, seed {run['seed']}"
    )


def _table(heading: str, rows: Sequence[Comparison]) -> list[str]:
    cells: list[Sequence[str]] = [(heading, *_HEADINGS[1:])]
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
    return _aligned(cells)


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    widths[0] = max(widths[0], 44)
    return [
        line[0].ljust(widths[0])
        + "".join(
            "  " + text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True)
        )
        for line in cells
    ]
