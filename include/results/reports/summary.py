"""The tables that `make demo` prints. Reads the published Parquet files and nothing heavier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from include.files.whole import read_json
from include.model.compliance import in_words
from include.results.reports.comparison import (
    Comparison,
    Reference,
    billed_by,
    compared,
    cost_unit,
    nothing_printed,
)
from include.results.reports.documents import page_text
from include.results.reports.tournament import (
    END_TO_END_SHARE,
    END_TO_END_TOTAL,
    Cell,
    Match,
    controller_name,
    matches,
)
from include.results.tables.catalogue import schema_of
from include.results.tables.quarantine import read_quarantine, sentences
from include.results.tables.staged import Row, read_table

_HEADINGS = ("", "measured", "published", "difference")
_OF_MANY_RUNS = {
    "strict_real_time_compliance_percent": "strict rt %",
    "strict_near_real_time_compliance_percent": "strict nrt %",
    "strict_relaxed_compliance_percent": "strict rel. %",
    END_TO_END_SHARE: "end-to-end nrt %",
    "resource_cost": "cost of hosts",
    "strict_total_cost": in_words("strict_total_cost"),
    END_TO_END_TOTAL: in_words(END_TO_END_TOTAL),
    "regret": "regret",
    "total_regret": "total regret",
    "utility_percent": "utility %",
}
_NAMED = 6
_OF_SEEDS = """\
Means over seeds, the best first, with their 95 % intervals ("-" where there is one seed).
The page has every run by itself.
"""
_STRICT = {
    "strict_near_real_time_compliance_percent": "Near real-time, percent",
    "strict_relaxed_compliance_percent": "Relaxed, percent",
    "strict_real_time_compliance_percent": "Real-time, percent",
    "age_p50_ms": "Age since the source, s, p50",
    "age_p95_ms": "Age since the source, s, p95",
    "age_p99_ms": "Age since the source, s, p99",
    "unprocessed_items": "Unprocessed items",
}
_STRICT_COST = {
    name: in_words(name).capitalize()
    for name in (
        "strict_near_real_time_total_cost",
        "strict_relaxed_total_cost",
        "strict_real_time_total_cost",
    )
}
_REGRET = {
    "regret": "Regret: hosts / cover",
    "total_regret": "Regret: near real-time total / cover",
}


def summary(
    folder: Path, reference: Reference = nothing_printed, *, end_to_end: bool = False
) -> str:
    """Strict figures of a run, then compliance and cost beside those of ``reference``, as plain
    text; of several runs the controllers ranked by their means, with ``end_to_end`` by the age of
    items.

    Price books that neither the run was controlled with nor the paper used are left to the
    page. Ends with the runs that were left out, and where the page and the Data Docs lie. Raises
    StoreError when nothing has been published in ``folder``, the folder of an experiment.
    """
    target = folder / "published"

    def table(name: str) -> list[Row]:
        return read_table(target / f"{name}.parquet")

    runs = table("runs")
    missing = read_json(target / "manifest.json").get("not_measured", [])
    ends_with = [
        *([missing_sentence(missing)] if missing else []),
        *sentences(read_quarantine(folder)),
        f"Page:      {target / 'report.html'}",
        f"Data Docs: {folder / 'data_docs' / 'index.html'}",
    ]
    if len(runs) > 1:
        ranked = map(_ranking, matches(table("tournament"), end_to_end=end_to_end))
        return "\n".join([*(line for lines in ranked for line in lines), _OF_SEEDS, *ends_with])
    tables = {"runs": runs, "compliance": table("compliance"), "cost": table("cost")}
    compliance, cost = compared(tables, reference)
    lines = [_title(runs[0]), "", *_strict(tables["compliance"], tables["cost"]), ""]
    for heading, rows in (
        ("Compliance, percent of items", compliance),
        (f"Cost, {cost_unit(tables['cost'])}", cost),
    ):
        lines += [*_table(heading, [row for row in rows if row.as_controlled or row.where]), ""]
    where = sorted({row.where for row in (*compliance, *cost) if row.where})
    if where:
        lines += [f"Published: {'; '.join(where)}.", ""]
    return "\n".join([*lines, *ends_with])


def missing_sentence(runs: Sequence[str]) -> str:
    """On the runs that were asked for last and are in no table."""
    more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    return (
        f"{len(runs)} of the runs that were asked for last are not measured, so means may be of "
        f"fewer seeds: {', '.join(runs[:_NAMED])}{more}"
    )


def _ranking(match: Match) -> list[str]:
    """One workload: a line per controller, the best first; by one total, so that it is not wide."""
    other = {"strict_total_cost"} if match.end_to_end else {END_TO_END_SHARE, END_TO_END_TOTAL}
    metrics = [name for name in _OF_MANY_RUNS if name in match.metrics and name not in other]
    cells = [
        (
            f"   by {_OF_MANY_RUNS[match.ranked_by]}",
            "seeds",
            *(_OF_MANY_RUNS[name] for name in metrics),
        )
    ]
    for rank, standing in enumerate(match.ranking, start=1):
        means = (_mean(standing.cells.get(name)) for name in metrics)
        cells.append((f"{rank:>3} {standing.name}", str(standing.runs), *means))
    return [match.title, *_aligned(cells, least=0), ""]


def _mean(cell: Cell | None) -> str:
    return "-" if cell is None else f"{cell.value} {cell.spread or '-'}"


def _strict(compliance: Sequence[Row], cost: Sequence[Row]) -> list[str]:
    """What the run came to, whatever it left undone: lines of its strict figures and ages."""
    cells = [("Strict: late, or overdue and left undone", "measured")]
    for row in compliance:
        if row["scope"] == "overall":
            cells += [(f"  {label}", _text("compliance", row, n)) for n, label in _STRICT.items()]
    books = billed_by(cost)
    for row in cost:
        if row["price_book_btu_min"] == row["btu_min"]:
            labels = _STRICT_COST | (_REGRET if row["regret"] is not None else {})
            cells += [
                (f"  {label}, {books[row['price_book']]}", _text("cost", row, name))
                for name, label in labels.items()
            ]
    return _aligned(cells)


def _text(table: str, row: Row, name: str) -> str:
    return page_text(row[name], schema_of(table).column(name)) or "-"


def _title(run: dict[str, Any]) -> str:
    return (
        f"{run['run']}: controller {controller_name(run)}, {run['pattern']}, "
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


def _aligned(cells: Sequence[Sequence[str]], least: int = 44) -> list[str]:
    """Columns side by side; the first one has ``least`` characters at least."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    widths[0] = max(widths[0], least)
    return [
        line[0].ljust(widths[0])
        + "".join(
            "  " + text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True)
        )
        for line in cells
    ]
