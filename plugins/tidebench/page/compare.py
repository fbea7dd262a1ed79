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
        shown = (one.mean if isinstance(one, Mean) else one for one in self.values)
        return self.unit == "percent" and any(value > 100 for value in shown if value)

    @property
    def differs(self) -> bool:
        """Whether the columns do not agree."""
        return len(set(self.values)) > 1

    def difference(self, place: int) -> float | None:
        """Of one column from the first; None for words, and where either has no number."""
        first, own = _mean(self.values[0]), _mean(self.values[place])
        return None if place == 0 or first is None or own is None else own.mean - first.mean

    def verdict(self, place: int) -> str:
        """Whether it is better or worse than the first, as `verdict_of` says it."""
        first, own = _mean(self.values[0]), _mean(self.values[place])
        if place == 0 or first is None or own is None:
            return ""
        return verdict_of(first, own, self.direction)

    def over(self, cases: Sequence[SeedCase]) -> Line:
        """The same over cases: means of numbers, and of words those that there are."""
        values = tuple(_folded([self.values[k] for k in case.places]) for case in cases)
        means = any(isinstance(value, Mean) for value in values)
        decimals = 1 if means and self.decimals is None else self.decimals
        return replace(self, values=values, decimals=decimals)


def compared(database_url: str, root: Path, asked: Sequence[str], by: str) -> Mapping[str, object]:
    """Everything that the page shows. Raises HTTPException 404 for a run that is not there.

    ``by`` is `run` or `case`, or anything else for what fits the runs.
    """
    found = found_runs(database_url, asked, TABLES)
    runs = [tables["runs"][0] for tables in found]
    way = way_of(runs, by)
    cases = cases_of(runs, way)
    sections = {
        "What was run": [_given(name, runs) for name in GIVEN],
        "What came of it": list(_lines("outcomes", found)),
        "Cost by price book": list(_keyed("cost", "price_book", COST, found)),
        "Compliance of all operators": list(_keyed("compliance", "scope", COMPLIANCE, found)),
        "Scaling": list(_lines("scaling_total", found)),
        "Utilisation": list(_lines("utilisation", found)),
    }
    return {
        "runs": runs,
        "cases": cases,
        "by": way,
        "other_way": _address(asked, BY_CASE if way == BY_RUN else BY_RUN)
        if len(cases_of(runs, BY_CASE)) < len(runs)
        else "",
        "here": _address(asked, way),
        "sections": {
            title: [line.over(cases) for line in lines] for title, lines in sections.items()
        },
        "figures": FIGURES,
        "beside": f"?{urlencode({'beside': asked}, doseq=True)}" if len(asked) > 1 else "",
        "files_at": {run["experiment"]: files_of(root, run["experiment"]) for run in runs},
    }


def found_runs(
    database_url: str, asked: Sequence[str], tables: Sequence[str]
) -> list[dict[str, list[Row]]]:
    """Runs, each given as `experiment/run`, with rows of some tables. HTTPException 404 for none,
    for too many, and for one that is not there."""
    if not asked:
        raise HTTPException(404, "Choose at least one run in the list, then compare again.")
    if len(asked) > MOST_RUNS:
        raise HTTPException(404, f"At most {MOST_RUNS} runs fit side by side; choose fewer.")
    keys = [(experiment, run) for experiment, _, run in (one.partition("/") for one in asked)]
    found = []
    for one, known in zip(asked, read_runs(database_url, keys, tables), strict=True):
        if known is None:
            raise HTTPException(404, f"There is no published run {one}; choose one in the list.")
        found.append(known)
    return found


def _address(asked: Sequence[str], by: str) -> str:
    return urlencode({"run": asked, "by": by}, doseq=True)


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
    known = dict.fromkeys(values)
    return next(iter(known)) if len(known) == 1 else ", ".join(str(one) for one in known)


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
    """What was asked for is shown as it was, neither rounded nor as a mean."""
    line = _line_of(name, runs, _column("runs", name))
    values = tuple(f"{one:g}" if isinstance(one, float) else str(one or "-") for one in line.values)
    return replace(line, decimals=None, values=values)


def _line_of(name: str, rows: Sequence[Row], column: Column | None, prefix: str = "") -> Line:
    label = in_words(name.removesuffix("_percent")).replace("btu ", "BTU ")
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
        direction_of(name),
    )


def _column(table: str, name: str) -> Column | None:
    return next((column for column in schema_of(table).columns if column.name == name), None)
