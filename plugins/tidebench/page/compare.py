"""Runs side by side: what is given, what came of it, and what each differs from the first by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import HTTPException

from include.model.compliance import in_words
from include.results.reports.results import Row, read_runs
from include.results.reports.statistics import Mean, mean_of
from include.results.reports.tournament import in_title
from include.results.tables.catalogue import Column, schema_of
from tidebench.page.better import as_mean, direction_of, verdict_of
from tidebench.page.cases import BY_CASE, BY_RUN, SeedCase, cases_of, labels_of, way_of
from tidebench.page.files import files_of
from tidebench.page.scatter import scatter_of

MOST_RUNS = 20
TABLES = ("outcomes", "cost", "compliance", "scaling_total", "utilisation")
GIVEN = (
    "experiment", "controller", "variant", "topology", "pattern", "conditions", "btu_min", "seed",
    "duration_min", "testbed", "flavor",
)  # fmt: skip
EXPERIMENT = Column(name="experiment", type="string", unit="name", description="")
"""Published tables are of one, so their schemas do not have it."""
FIRST = (
    "strict_total_cost", "strict_near_real_time_compliance_percent",
    "strict_relaxed_compliance_percent", "end_to_end_near_real_time_total_cost",
    "end_to_end_near_real_time_compliance_percent", "age_p95_ms", "unprocessed_items",
    "host_hours", "resource_cost", "total_regret", "scaling_events", "items_in_pauses",
    "host_events", "utility_percent",
)  # fmt: skip
"""Outcomes that most readers want; the others are folded."""
COST = (
    "resource_cost", "begun_cost", "strict_relaxed_total_cost", "strict_near_real_time_total_cost",
    "strict_real_time_total_cost", "end_to_end_near_real_time_total_cost", "regret",
    "total_regret", "relaxed_total_cost", "near_real_time_total_cost", "real_time_total_cost",
)  # fmt: skip
COMPLIANCE = ("near_real_time_compliance_percent", "duration_p95_ms")
"""Of all operators, what outcomes do not have."""


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity of all columns; ``values`` in their order, None where one has none.

    A column is a run, or a case with the mean of its runs.
    """

    name: str
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
    def is_known(self) -> bool:
        return any(value not in (None, "", "-") for value in self.values)

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1

    def difference(self, place: int) -> float | None:
        """Of one column from the first; None for words, and where either has no number."""
        first, other = as_mean(self.values[0]), as_mean(self.values[place])
        return other.mean - first.mean if place and first and other else None

    def verdict(self, place: int) -> str:
        """Whether it is better or worse than the first, as `verdict_of` says it."""
        first, other = as_mean(self.values[0]), as_mean(self.values[place])
        return verdict_of(first, other, self.direction) if place and first and other else ""

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

    def over_cases(lines: Iterable[Line]) -> list[Line]:
        return [line for line in (one.over(cases) for one in lines) if line.is_known]

    outcomes = {line.name: line for line in over_cases(_lines("outcomes", tables_by_run))}
    first = [outcomes.pop(name) for name in FIRST if name in outcomes]
    others = [*outcomes.values(), *over_cases(_compliance(tables_by_run))]
    sections = {
        "What was run": over_cases(_given(name, runs) for name in GIVEN),
        "What came of it": first,
        "More outcomes": others,
        "Scaling": over_cases(
            line for line in _lines("scaling_total", tables_by_run) if line.name not in FIRST
        ),
        "Utilisation": over_cases(_lines("utilisation", tables_by_run)),
    }
    return {
        "runs": runs,
        "cases": cases,
        "labels": labels_of(cases),
        "by": way,
        "other_way": _address(chosen, BY_CASE if way == BY_RUN else BY_RUN)
        if len(cases_of(runs, BY_CASE)) < len(runs)
        else "",
        "here": _address(chosen, way),
        "sections": {
            title: _folded_lines(lines, len(cases) > 1 or title == "What was run")
            for title, lines in sections.items()
            if lines
        },
        "books": {
            book: [line.over(cases) for line in lines]
            for book, lines in _by_price_book(tables_by_run).items()
        },
        "scatter": scatter_of(labels_of(cases), {line.name: line.values for line in first}),
        "files_at": {run["experiment"]: files_of(root, run["experiment"]) for run in runs},
    }


def _folded_lines(lines: Sequence[Line], fold: bool) -> Mapping[str, list[Line]]:
    """Lines to show as rows, and those that are equal in all columns to show as one."""
    return {
        "differ": [line for line in lines if line.differs or not fold],
        "equal": [line for line in lines if fold and not line.differs],
    }


def found_runs(
    database_url: str, chosen: Sequence[str], tables: Sequence[str]
) -> list[dict[str, list[Row]]]:
    """Runs, each given as `experiment/run`, with rows of some tables. HTTPException 404 for none,
    for too many, and for one that is not there."""
    if not chosen:
        raise HTTPException(
            404, "Choose at least one run in the list, then press “Compare the chosen”."
        )
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


def _folded(values: Sequence[Any]) -> Any:
    """Of one run its own value, of several the mean, where all have a number."""
    if len(values) == 1:
        return values[0]
    if None in values:
        return None
    if all(as_mean(value) is not None for value in values):
        return mean_of(values)
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else ", ".join(map(str, distinct))


def _lines(table: str, tables_by_run: Sequence[Mapping[str, list[Row]]]) -> Iterator[Line]:
    """The measured columns of a table with at most one row per run."""
    inputs = {*GIVEN, "run"}
    rows = [tables[table][0] if tables[table] else {} for tables in tables_by_run]
    for column in schema_of(table).columns:
        if column.name not in inputs:
            yield _line_of(rows, column)


def _compliance(tables_by_run: Sequence[Mapping[str, list[Row]]]) -> Iterator[Line]:
    """Of all operators together."""
    rows = [_keyed(tables["compliance"], "scope").get("overall", {}) for tables in tables_by_run]
    for name in COMPLIANCE:
        yield _line_of(rows, schema_of("compliance").column(name))


def _by_price_book(
    tables_by_run: Sequence[Mapping[str, list[Row]]],
) -> Mapping[str, list[Line]]:
    """Columns of costs by price book, those alone that some book has a value of."""
    rows_by_run = [_keyed(tables["cost"], "price_book") for tables in tables_by_run]
    books = dict.fromkeys(book for rows in rows_by_run for book in rows)
    lines = {
        book: [
            _line_of([rows.get(book, {}) for rows in rows_by_run], schema_of("cost").column(name))
            for name in COST
        ]
        for book in books
    }
    names = {line.name for of_book in lines.values() for line in of_book if line.is_known}
    return {
        book: [line for line in of_book if line.name in names] for book, of_book in lines.items()
    }


def _keyed(rows: Sequence[Row], key: str) -> Mapping[str, Row]:
    return {row[key]: row for row in rows}


def _given(name: str, runs: Sequence[Row]) -> Line:
    """What was asked for is shown as it was, neither rounded nor as a mean."""
    line = _line_of(runs, EXPERIMENT if name == "experiment" else schema_of("runs").column(name))
    return replace(line, decimals=None, values=tuple(_as_given(value) for value in line.values))


def _as_given(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "-" if value in (None, "") else in_title(str(value))


def _line_of(rows: Sequence[Row], column: Column) -> Line:
    name, decimals = column.name, column.decimals
    values = tuple(row.get(name) for row in rows)
    unit = "" if column.unit in ("name", "text", "number", "count", "cost") else column.unit
    words = in_words(name.removesuffix("_percent")).replace("btu ", "BTU ")
    words = words.removesuffix(" ms").removesuffix(" min")
    if unit == "ms":  # two places of a short time, none of a long one
        unit = "s"
        values = tuple(None if value is None else value / 1000 for value in values)
        longest_s = max((value for value in values if value is not None), default=0.0)
        decimals = 2 if longest_s < 10 else 1 if longest_s < 100 else 0
    symbol = "%" if unit == "percent" else unit
    title = words + (f" ({symbol})" if unit and unit not in words else "")
    return Line(
        name=name,
        label=title[:1].upper() + title[1:],
        about=column.description,
        decimals=decimals,
        values=values,
        unit=unit,
        direction=direction_of(name),
    )
