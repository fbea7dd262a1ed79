"""Runs side by side: what is given, what came of it, and what each differs from the first by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import HTTPException

from include.reports.results import Row, read_run
from include.tables.catalogue import Column, schema_of
from tidebench.page.figures import FIGURES
from tidebench.page.files import files_of, is_stored

MOST_RUNS = 6
TABLES = ("outcomes", "cost", "compliance", "scaling_total", "utilisation")
GIVEN = (
    "experiment", "controller", "variant", "topology", "pattern", "conditions", "btu_min", "seed",
    "duration_min", "testbed", "flavor",
)  # fmt: skip
COST = (
    "strict_near_real_time_total_cost", "strict_relaxed_total_cost", "strict_real_time_total_cost",
    "resource_cost", "regret", "real_time_total_cost", "near_real_time_total_cost",
    "relaxed_total_cost",
)  # fmt: skip
COMPLIANCE = (
    "strict_near_real_time_compliance_percent", "strict_relaxed_compliance_percent",
    "age_p95_ms", "strict_real_time_compliance_percent", "unprocessed_items",
    "real_time_compliance_percent", "near_real_time_compliance_percent",
    "relaxed_compliance_percent", "duration_p95_ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity of all runs; ``values`` in their order, None where one has none."""

    label: str
    about: str
    decimals: int | None
    values: tuple[Any, ...]
    unit: str

    @property
    def overfull(self) -> bool:
        """Whether some share is more than all there is, so that a reader wonders why."""
        return self.unit == "percent" and any(value > 100 for value in self.values if value)

    @property
    def differs(self) -> bool:
        """Whether the runs do not agree."""
        return len(set(self.values)) > 1

    def difference(self, place: int) -> float | None:
        """Of one run from the first; None for words, and where either has no number."""
        first, own = self.values[0], self.values[place]
        if place == 0 or not (isinstance(first, int | float) and isinstance(own, int | float)):
            return None
        return own - first


def compared(database_url: str, root: Path, asked: Sequence[str]) -> Mapping[str, object]:
    """Everything that the page shows. Raises HTTPException 404 for a run that is not there."""
    found = [_found(database_url, one) for one in asked]
    runs = [tables["runs"][0] for tables in found]
    return {
        "runs": runs,
        "sections": {
            "What was run": [_given(name, runs) for name in GIVEN],
            "What came of it": list(_lines("outcomes", found)),
            "Cost by price book": list(_keyed("cost", "price_book", COST, found)),
            "Compliance of all operators": list(_keyed("compliance", "scope", COMPLIANCE, found)),
            "Scaling": list(_lines("scaling_total", found)),
            "Utilisation": list(_lines("utilisation", found)),
        },
        "figures": FIGURES,
        "beside": f"?{urlencode({'beside': asked}, doseq=True)}" if len(asked) > 1 else "",
        "can_run_again": lambda run: is_stored(root, run["experiment"], run["run"]),
        "files_at": {run["experiment"]: files_of(root, run["experiment"]) for run in runs},
    }


def _found(database_url: str, asked: str) -> dict[str, list[Row]]:
    experiment, _, run = asked.partition("/")
    found = read_run(database_url, experiment, run, TABLES)
    if found is None:
        raise HTTPException(404, f"There is no published run {asked}; choose one in the list.")
    return found


def _lines(table: str, found: Sequence[Mapping[str, list[Row]]]) -> Iterator[Line]:
    """The measured columns of a table with at most one row per run."""
    given = {*GIVEN, "run"}
    rows = [tables[table][0] if tables[table] else {} for tables in found]
    for column in schema_of(table).columns:
        if column.name not in given:
            yield _line_of(column.name, rows, column)


def _keyed(
    table: str, key: str, columns: Sequence[str], found: Sequence[Mapping[str, list[Row]]]
) -> Iterator[Line]:
    """Columns of a table with several rows per run; of compliance only those over all operators."""
    by_key = [{row[key]: row for row in tables[table]} for tables in found]
    names = dict.fromkeys(name for rows in by_key for name in rows)
    wanted = [one for one in names if table != "compliance" or one == "overall"]
    for name in wanted:
        for column in columns:
            rows = [one.get(name, {}) for one in by_key]
            prefix = "" if name == "overall" else f"{name}: "
            yield _line_of(column, rows, _column(table, column), prefix)


def _given(name: str, runs: Sequence[Row]) -> Line:
    """What was asked for is shown as it was, not rounded."""
    column = _column("runs", name)
    return replace(_line_of(name, runs, column), decimals=None)


def _line_of(name: str, rows: Sequence[Row], column: Column | None, prefix: str = "") -> Line:
    label = name.replace("near_real_time", "near real-time").replace("real_time", "real-time")
    label = label.removesuffix("_percent").replace("_", " ").replace("btu ", "BTU ")
    unit = (
        "" if column is None or column.unit in ("name", "text", "number", "count") else column.unit
    )
    words = label.removesuffix(" ms").removesuffix(" min")
    shown = f"{prefix}{words}" + (f" ({unit})" if unit and unit not in words else "")
    return Line(
        shown if prefix else shown[:1].upper() + shown[1:],
        "" if column is None else column.description,
        None if column is None else column.decimals,
        tuple(row.get(name) for row in rows),
        unit,
    )


def _column(table: str, name: str) -> Column | None:
    return next((column for column in schema_of(table).columns if column.name == name), None)
