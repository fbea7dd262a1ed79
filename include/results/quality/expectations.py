"""What must be true of a table: its checks.yaml, compiled to expectations.

Every entry of ``sql/tables/<table>/checks.yaml`` names a check of CHECKS, its columns and its
options; ``severity: warn`` (else ``fail``) lets a run be published that does not pass it. That the
columns and the key are those of schema.yaml is checked of every table.

The only module that names classes of Great Expectations; it imports them when a suite is made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from include.model.errors import SetupError, unknown_name
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED, read_sql_yaml, schema_of

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

CHECKED: tuple[str, ...] = (INPUT_CHECKS, *PUBLISHED)
"""Every table that is checked, in the order of the verdict."""

SEVERITIES: Mapping[str, str] = {"fail": "critical", "warn": "warning"}
"""What a check that fails does to a run, and what Great Expectations calls it."""

Expected = Iterator[tuple[str, str, dict[str, Any]]]
"""Expectations: class, the sentence that a reader sees, arguments."""


def suite_of(table: str, runs: Sequence[str]) -> list[Expectation]:
    """The expectations of one table of these runs, each with its sentence.

    Raises SetupError, naming the file, for a check that cannot be compiled.
    """
    expectations = _expectations(_well_formed(table), "fail")
    for entry in read_sql_yaml(table, "checks"):
        try:
            expectations += _compiled(entry, runs)
        except (KeyError, TypeError, ValueError) as error:
            choices = f"a check is one of {', '.join(CHECKS)}, a severity {' or '.join(SEVERITIES)}"
            where = f"sql/tables/{table}/checks.yaml: {entry}"
            raise SetupError(f"{where} is no check ({error}); {choices}") from error
    return expectations


def _compiled(entry: str | dict[str, Any], runs: Sequence[str]) -> list[Expectation]:
    options: dict[str, Any] = {entry: ()} if isinstance(entry, str) else dict(entry)
    check, severity = next(iter(options)), options.pop("severity", "fail")
    columns = options.pop(check)
    if check not in CHECKS:
        raise ValueError(unknown_name("check", check, CHECKS))
    if options.get("highest") == "runs":
        options["highest"] = len(runs)
    subject = runs if check in OF_RUNS else columns
    return _expectations(CHECKS[check](subject, **options), severity)


def _expectations(wanted: Expected, severity: str) -> list[Expectation]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Great Expectations imports what is deprecated
        import great_expectations.expectations as gxe

    level = SEVERITIES[severity]
    return [
        getattr(gxe, name)(**arguments, notes=sentence, severity=level)
        for name, sentence, arguments in wanted
    ]


def _well_formed(table: str) -> Expected:
    """Columns as in schema.yaml, and a key that is complete and unique."""
    schema = schema_of(table)
    key, names = list(schema.key), list(schema.column_names)
    ordered = "ExpectTableColumnsToMatchOrderedList"
    yield ordered, "The columns are those of the schema.", {"column_list": names}
    yield from filled(key)
    sentence = f"One row per {' and '.join(key)}."
    if len(key) > 1:
        yield "ExpectCompoundColumnsToBeUnique", sentence, {"column_list": key}
    else:
        yield "ExpectColumnValuesToBeUnique", sentence, {"column": key[0]}


def not_empty(_: Sequence[str]) -> Expected:
    """At least one row, in a table over several runs; ``every_run`` asks for the rows of each."""
    yield "ExpectTableRowCountToBeBetween", "The table is not empty.", {"min_value": 1}


def every_run(runs: Sequence[str]) -> Expected:
    """No run is missing and none is there that was not measured."""
    arguments = {"column": "run", "value_set": list(runs)}
    contain = "ExpectColumnDistinctValuesToContainSet"
    yield contain, "Every measured run is in the table.", arguments
    yield from known_runs(runs)


def known_runs(runs: Sequence[str]) -> Expected:
    """No run is there that was not measured."""
    arguments = {"column": "run", "value_set": list(runs)}
    yield "ExpectColumnValuesToBeInSet", "Every row belongs to a measured run.", arguments


def filled(columns: Sequence[str]) -> Expected:
    """No missing value."""
    for column in columns:
        yield "ExpectColumnValuesToNotBeNull", f"{column} is never missing.", {"column": column}


def within(columns: Sequence[str], lowest: float, highest: float | None = None) -> Expected:
    """Numbers that are there and within limits."""
    yield from filled(columns)
    yield from known(columns, lowest, highest)


def known(columns: Sequence[str], lowest: float, highest: float | None = None) -> Expected:
    """Numbers that are within limits wherever they are there."""
    span = f"at least {lowest:g}" if highest is None else f"between {lowest:g} and {highest:g}"
    for column in columns:
        limits = {"column": column, "min_value": lowest, "max_value": highest}
        yield "ExpectColumnValuesToBeBetween", f"{column} is {span}.", limits


def positive(columns: Sequence[str]) -> Expected:
    """Numbers above 0 wherever they are there."""
    for column in columns:
        limits = {"column": column, "min_value": 0, "strict_min": True}
        yield "ExpectColumnValuesToBeBetween", f"{column} is above 0.", limits


def descending(columns: Sequence[str], says: str = "") -> Expected:
    """In every row, each of these columns is at least the next one wherever both are there."""
    for larger, smaller in pairwise(columns):
        pair = {"column_A": larger, "column_B": smaller, "or_equal": True}
        sentence = says or f"{larger} is at least {smaller}."
        arguments = {**pair, "ignore_row_if": "either_value_is_missing"}
        yield "ExpectColumnPairValuesAToBeGreaterThanB", sentence, arguments


def matching(columns: Sequence[str], pattern: str, says: str) -> Expected:
    """Text that matches a regular expression."""
    for column in columns:
        yield "ExpectColumnValuesToMatchRegex", says, {"column": column, "regex": pattern}


CHECKS: Mapping[str, Callable[..., Expected]] = {
    check.__name__: check
    for check in (
        every_run,
        known_runs,
        not_empty,
        filled,
        within,
        known,
        positive,
        descending,
        matching,
    )
}
OF_RUNS = ("every_run", "known_runs")
"""Checks that take the measured runs in place of columns."""
