"""Runs side by side: what is given, what came of it, and what each differs from the first by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import HTTPException

from include.model.compliance import in_words
from include.results.reports.results import Row, read_runs
from include.results.tables.catalogue import Column, schema_of
from tidebench.page.better import Mean, direction_of, mean_of, verdict_of
from tidebench.page.cases import BY_CASE, BY_RUN, SeedCase, cases_of, way_of
from tidebench.page.figures import FIGURES
from tidebench.page.files import files_of

MOST_RUNS = 20
TABLES = ("outcomes", "cost", "compliance", "scaling_total", "utilisation")
GIVEN = (
    "experiment", "controller", "variant", "topology", "pattern", "conditions", "btu_min", "seed",
    "duration_min", "testbed", "flavor",
)  # fmt: skip
COST = (
    "strict_near_real_time_total_cost", "strict_relaxed_total_cost", "strict_real_time_total_cost",
    "resource_cost", "begun_cost", "regret", "total_regret", "real_time_total_cost",
    "near_real_time_total_cost", "relaxed_total_cost",
)  # fmt: skip
COMPLIANCE = (
    "strict_near_real_time_compliance_percent", "strict_relaxed_compliance_percent",
    "age_p95_ms", "strict_real_time_compliance_percent", "unprocessed_items",
    "real_time_compliance_percent", "near_real_time_compliance_percent",
    "relaxed_compliance_percent", "duration_p95_ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity of all columns; ``values`` in their order, None where one has none.

    A column is a run, or a case with the mean of its runs.
    """

    label: str
    about: str
    decimals: int | None
    values: tuple[Any, ...]
    unit: str
    direction: int = 0
    """1 where more is better, -1 where less is, 0 where neither."""

    @property
    def overfull(self) -> bool:
        """Whether some share is more than all there is, so that a reader wonders why."""
        numbers = (value.mean if isinstance(value, Mean) else value for value in self.values)
        return self.unit == "percent" and any(value > 100 for value in numbers if value)

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1

    def difference(self, place: int) -> float | None:
        """Of one column from the first; None for words, and where either has no number."""
        first, other = _mean(self.values[0]), _mean(self.values[place])
        return None if place == 0 or first is None or other is None else other.mean - first.mean

    def verdict(self, place: int) -> str:
        """Whether it is better or worse than the first, as `verdict_of` says it."""
        first, other = _mean(self.values[0]), _mean(self.values[place])
        if place == 0 or first is None or other is None:
            return ""
        return verdict_of(first, other, self.direction)

    def over(self, cases: Sequence[SeedCase]) -> Line:
        """The same over cases: means of numbers, and of words those that there are."""
        values = tuple(_folded([self.values[k] for k in case.places]) for case in cases)
        means = any(isinstance(value, Mean) for value in values)
        decimals = 1 if means and self.decimals is None else self.decimals
        return replace(self, values=values, decimals=decimals)


def compared(database_url: str, root: Path, chosen: Sequence[str], by: str) -> Mapping[str, object]:
    """Everything that the page shows. Raises HTTPException 404 for a run that is not there.

    ``by`` is `run` or `case`, or anything else for what fits the runs.
    """
    tables_by_run = found_runs(database_url, chosen, TABLES)
    runs = [tables["runs"][0] for tables in tables_by_run]
    way = way_of(runs, by)
    cases = cases_of(runs, way)
    sections = {
        "What was run": [_given(name, runs) for name in GIVEN],
        "What came of it": list(_lines("outcomes", tables_by_run)),
        "Cost by price book": list(_keyed("cost", "price_book", COST, tables_by_run)),
        "Compliance of all operators": list(
            _keyed("compliance", "scope", COMPLIANCE, tables_by_run)
        ),
        "Scaling": list(_lines("scaling_total", tables_by_run)),
        "Utilisation": list(_lines("utilisation", tables_by_run)),
    }
    return {
        "runs": runs,
        "cases": cases,
        "by": way,
        "other_way": _address(chosen, BY_CASE if way == BY_RUN else BY_RUN)
        if len(cases_of(runs, BY_CASE)) < len(runs)
        else "",
        "here": _address(chosen, way),
        "sections": {
            title: [line.over(cases) for line in lines] for title, lines in sections.items()
        },
        "figures": FIGURES,
        "beside": f"?{urlencode({'beside': chosen}, doseq=True)}" if len(chosen) > 1 else "",
        "files_at": {run["experiment"]: files_of(root, run["experiment"]) for run in runs},
    }


def found_runs(
    database_url: str, chosen: Sequence[str], tables: Sequence[str]
) -> list[dict[str, list[Row]]]:
    """Runs, each given as `experiment/run`, with rows of some tables. HTTPException 404 for none,
    for too many, and for one that is not there."""
    if not chosen:
        raise HTTPException(404, "Choose at least one run in the list, then compare again.")
    if len(chosen) > MOST_RUNS:
        raise HTTPException(404, f"At most {MOST_RUNS} runs fit side by side; choose fewer.")
    keys = [(experiment, run) for experiment, _, run in (text.partition("/") for text in chosen)]
    tables_by_run = []
    for text, rows_by_table in zip(chosen, read_runs(database_url, keys, tables), strict=True):
        if rows_by_table is None:
            raise HTTPException(404, f"There is no published run {text}; choose one in the list.")
        tables_by_run.append(rows_by_table)
    return tables_by_run


def _address(chosen: Sequence[str], by: str) -> str:
    return urlencode({"run": chosen, "by": by}, doseq=True)


def _mean(value: Any) -> Mean | None:
    if isinstance(value, Mean):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return mean_of([value]) if is_number else None


def _folded(values: Sequence[Any]) -> Any:
    """Of one run its own value, of several the mean, where all have a number."""
    if len(values) == 1:
        return values[0]
    means = [_mean(value) for value in values]
    if all(mean is not None for mean in means) and values:
        return mean_of(values)
    distinct = dict.fromkeys(values)
    return (
        next(iter(distinct)) if len(distinct) == 1 else ", ".join(str(value) for value in distinct)
    )


def _lines(table: str, tables_by_run: Sequence[Mapping[str, list[Row]]]) -> Iterator[Line]:
    """The measured columns of a table with at most one row per run."""
    inputs = {*GIVEN, "run"}
    rows = [tables[table][0] if tables[table] else {} for tables in tables_by_run]
    for column in schema_of(table).columns:
        if column.name not in inputs:
            yield _line_of(column.name, rows, column)


def _keyed(
    table: str, key: str, columns: Sequence[str], tables_by_run: Sequence[Mapping[str, list[Row]]]
) -> Iterator[Line]:
    """Columns of a table with several rows per run; of compliance only those over all operators."""
    by_key = [{row[key]: row for row in tables[table]} for tables in tables_by_run]
    names = dict.fromkeys(name for rows in by_key for name in rows)
    shown_names = [name for name in names if table != "compliance" or name == "overall"]
    for name in shown_names:
        for column in columns:
            rows = [rows_of_run.get(name, {}) for rows_of_run in by_key]
            prefix = "" if name == "overall" else f"{name}: "
            yield _line_of(column, rows, _column(table, column), prefix)


def _given(name: str, runs: Sequence[Row]) -> Line:
    """What was asked for is shown as it was, neither rounded nor as a mean."""
    line = _line_of(name, runs, _column("runs", name))
    values = tuple(
        f"{value:g}" if isinstance(value, float) else str(value or "-") for value in line.values
    )
    return replace(line, decimals=None, values=values)


def _line_of(name: str, rows: Sequence[Row], column: Column | None, prefix: str = "") -> Line:
    label = in_words(name.removesuffix("_percent")).replace("btu ", "BTU ")
    unit = (
        "" if column is None or column.unit in ("name", "text", "number", "count") else column.unit
    )
    words = label.removesuffix(" ms").removesuffix(" min")
    title = f"{prefix}{words}" + (f" ({unit})" if unit and unit not in words else "")
    return Line(
        title if prefix else title[:1].upper() + title[1:],
        "" if column is None else column.description,
        None if column is None else column.decimals,
        tuple(row.get(name) for row in rows),
        unit,
        direction_of(name),
    )


def _column(table: str, name: str) -> Column | None:
    return next((column for column in schema_of(table).columns if column.name == name), None)
