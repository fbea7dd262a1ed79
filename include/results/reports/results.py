"""Reading the results database: runs of all experiments, found, sorted and page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.engine import URL

from include.model.errors import PublishError
from include.results.reports.database import connected, engine_of
from include.results.tables.catalogue import SQL_ROOT, schema_of
from include.results.templates import templates_in

Row = Mapping[str, Any]

FILTERS: Mapping[str, Callable[[str], str | float]] = {
    **dict.fromkeys(("experiment", "controller", "topology", "pattern", "testbed"), str),
    "btu_min": float,
    "seed": int,
}
"""Columns of runs that a filter asks for one value of, and how each is read."""
CHOICES = tuple(name for name in FILTERS if name != "seed")
"""Those whose values a reader chooses from; there may be as many seeds as runs."""
RANGES: Mapping[str, str] = {
    "cost": "outcomes.strict_total_cost",
    "date": "SUBSTR(COALESCE(origins.measured_at, publications.published_at), 1, 10)",
}
"""What a filter asks for from and to, both included; a date is ten letters of ISO 8601."""
SHOWN = ("current", "archived", "all")
"""Whether runs that were put away are left out, alone, or among the others."""
SEARCHED = (
    "experiment", "run", "controller", "variant", "topology", "pattern", "conditions", "testbed",
)  # fmt: skip
"""Columns of runs that words are looked for in."""
SEPARATORS = "-_=/,;:()"
"""What ends a word within a column, beside spaces."""
ORDERS: Mapping[str, str] = {
    "when": "COALESCE(origins.measured_at, publications.published_at)",
    "experiment": "runs.experiment",
    "controller": "runs.controller",
    "topology": "runs.topology",
    "pattern": "runs.pattern",
    "btu": "runs.btu_min",
    "seed": "runs.seed",
    "cost": "outcomes.strict_total_cost",
    "compliance": "outcomes.strict_relaxed_compliance_percent",
    "near_real_time": "outcomes.strict_near_real_time_compliance_percent",
    "end_to_end": "outcomes.end_to_end_near_real_time_compliance_percent",
    "end_to_end_cost": "outcomes.end_to_end_near_real_time_total_cost",
    "age": "outcomes.age_p95_ms",
}
"""What runs can be sorted by, and the column of each: none that leaving items undone improves."""
_OUTCOMES = (
    "strict_near_real_time_compliance_percent", "strict_relaxed_compliance_percent", "age_p95_ms",
    "end_to_end_near_real_time_compliance_percent", "unprocessed_items", "strict_total_cost",
    "end_to_end_near_real_time_total_cost", "host_hours", "resource_cost", "total_cost",
    "real_time_compliance_percent", "relaxed_compliance_percent", "latency_p50_ms",
    "latency_p95_ms", "scaling_events", "items_in_pauses", "host_events", "utility_percent",
)  # fmt: skip
PAGE_RUNS = 50

_SQL = templates_in(SQL_ROOT / "results", escape=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which runs, in which order, and which page of them. ``equal`` has columns of FILTERS."""

    equal: Mapping[str, str | float] = field(default_factory=dict)
    ranges: Mapping[str, str | float] = field(default_factory=dict)
    """By ``<name of RANGES>_from`` and ``_to``."""
    tag: str = ""
    shown: str = SHOWN[0]
    text: str = ""
    """Words in any order and case. Each is in one of the columns of SEARCHED: its begin, or whole
    words of it. So ``btu`` finds the controllers ``btu`` and ``btu-runtime``, but not ``btu10``
    within the name of a run."""
    sort: str = "when"
    descending: bool = True
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRuns:
    """One page of runs, how many there are on all pages, and what the filters offer."""

    runs: Sequence[Row] = ()
    total: int = 0
    choices: Mapping[str, Sequence[str | float]] = field(default_factory=dict)
    tags: Sequence[str] = ()
    """Every tag that some run has."""

    @property
    def pages(self) -> int:
        """How many pages there are; one when nothing was found."""
        return max(1, -(-self.total // PAGE_RUNS))


def find_runs(database_url: str, query: Query, per_page: int = PAGE_RUNS) -> FoundRuns:
    """Runs with their outcome, page by page; nothing where nothing was ever published.

    Raises PublishError when the database cannot be read.
    """
    with _opened(database_url) as connection:
        if connection is None:
            return FoundRuns()
        equal = {
            name: value for name, value in query.equal.items() if name in FILTERS and value != ""
        }
        shape, values = _asked(replace(query, equal=equal))
        (counted,) = _rows(connection, "runs", shape | {"counted": True}, values)
        chosen = _rows(connection, "choices", {"columns": CHOICES})
        place = {"limit": per_page, "offset": per_page * (max(query.page, 1) - 1)}
        return FoundRuns(
            runs=_rows(connection, "runs", shape, {**values, **place}),
            total=counted["runs"],
            choices={column: sorted({row[column] for row in chosen}) for column in CHOICES},
            tags=sorted({tag for row in _rows(connection, "tags") for tag in row["tags"].split()}),
        )


def read_runs(
    database_url: str, runs: Sequence[tuple[str, str]], tables: Sequence[str] = ()
) -> list[dict[str, list[Row]] | None]:
    """The row of ``runs`` with its outcome, and its rows of other published tables, by table.

    Of each run, given by experiment and run; None in place of one that was not published. Raises
    PublishError when the database cannot be read.
    """
    with _opened(database_url) as connection:
        if connection is None:
            return [None] * len(runs)
        return [_read(connection, experiment, run, tables) for experiment, run in runs]


def _read(
    connection: Connection, experiment: str, run: str, tables: Sequence[str]
) -> dict[str, list[Row]] | None:
    key = {"experiment": experiment, "run": run}
    shape, values = _asked(Query(equal=key, shown="all"))
    rows = _rows(connection, "runs", shape, {**values, "limit": 1, "offset": 0})
    if not rows:
        return None
    others = {
        table: _rows(connection, "of_run", {"table": schema_of(table)}, key) for table in tables
    }
    return {"runs": rows, **others}


def runs_of(database_url: str, experiment: str) -> list[str]:
    """Ids of the published runs of an experiment. Raises PublishError as the others do."""
    with _opened(database_url) as connection:
        if connection is None:
            return []
        rows = _rows(connection, "of_experiment", values={"experiment": experiment})
        return [row["run"] for row in rows]


def _asked(query: Query) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `runs` is rendered with for a query, and the values of its parameters."""
    words = {f"word_{k}": word for k, word in enumerate(query.text.split()[:8])}
    ranges = [
        (column, sign, f"{name}_{end}")
        for name, column in RANGES.items()
        for end, sign in (("from", ">="), ("to", "<="))
        if f"{name}_{end}" in query.ranges
    ]
    shape = {
        "equal": list(query.equal), "words": list(words), "searched": SEARCHED,
        "separators": SEPARATORS, "counted": False,
        "order": ORDERS.get(query.sort, ORDERS["when"]), "descending": query.descending,
        "outcomes": _OUTCOMES, "tagged": query.tag, "shown": query.shown, "ranges": ranges,
    }  # fmt: skip
    values: dict[str, Any] = {**query.equal, **query.ranges}
    for name, word in words.items():
        values |= {f"{name}_{kind}": pattern for kind, pattern in _patterns(word).items()}
    if query.tag:
        values["tag"] = f"% {_literally(query.tag)} %"
    return shape, values


def _patterns(word: str) -> dict[str, str]:
    """LIKE patterns for a column that begins with the word, and for whole words within one."""
    begins = f"{_literally(word)}%"
    blanks = str.maketrans(SEPARATORS, " " * len(SEPARATORS))
    whole = " ".join(word.translate(blanks).split())
    return {"begins": begins, "whole": f"% {_literally(whole)} %" if whole else begins}


def _literally(word: str) -> str:
    """A word as a LIKE pattern that means nothing but itself."""
    for special in "!%_":
        word = word.replace(special, f"!{special}")
    return word.lower()


def _rows(
    connection: Connection,
    statement: str,
    shape: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
) -> list[Row]:
    sql = _SQL.get_template(f"{statement}.sql.j2").render(shape or {})
    # PostgreSQL refuses a NUL and SQLite reads up to it; no name has one, nor what stands for it.
    values = {
        name: value.replace("\0", "\ufffd") if isinstance(value, str) else value
        for name, value in (values or {}).items()
    }
    return [dict(row) for row in connection.execute(sa.text(sql), values).mappings()]


@contextmanager
def _opened(database_url: str) -> Iterator[Connection | None]:
    """The database, opened for reading; None where nothing was ever published.

    A SQLite file that is not there is not made. Raises PublishError without URL and statement:
    neither is the reader's, and one has a password.
    """
    engine = engine_of(database_url)
    url = engine.url
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        yield None
        return
    with connected(engine, _unreadable) as connection:
        yield connection if sa.inspect(connection).has_table("runs") else None


def _unreadable(url: URL, error: Exception) -> PublishError:
    return PublishError(
        f"the results database cannot be read ({type(error).__name__}). Check that it runs and "
        "that the connection tidebench_results is right; if it was made by an earlier version of "
        "Tidebench, publish an experiment into it again, which adds what it lacks"
    )
