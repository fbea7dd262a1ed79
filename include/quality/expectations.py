"""The expectations that suites are made of, each with the sentence that a reader sees.

The only module that names classes of Great Expectations; it imports them when a suite is
made, so that the list of suites is light to import.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from include.tables.catalogue import schema_of

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def well_formed(table: str) -> list[Expectation]:
    """Columns as in schema.yaml, and a key that is complete and unique."""
    schema = schema_of(table)
    key = list(schema.key)
    sentence = f"One row per {' and '.join(key)}."
    return [
        _expect(
            "ExpectTableColumnsToMatchOrderedList",
            "The columns are those of the schema.",
            column_list=list(schema.column_names),
        ),
        *filled(key),
        _expect("ExpectCompoundColumnsToBeUnique", sentence, column_list=key)
        if len(key) > 1
        else _expect("ExpectColumnValuesToBeUnique", sentence, column=key[0]),
    ]


def not_empty() -> Expectation:
    """At least one row, in a table over several runs; ``every_run`` asks for the rows of each."""
    return _expect("ExpectTableRowCountToBeBetween", "The table is not empty.", min_value=1)


def every_run(runs: Sequence[str]) -> list[Expectation]:
    """No run is missing and none is there that was not measured."""
    return [
        _expect(
            "ExpectColumnDistinctValuesToContainSet",
            "Every measured run is in the table.",
            column="run",
            value_set=list(runs),
        ),
        *known_runs(runs),
    ]


def known_runs(runs: Sequence[str]) -> list[Expectation]:
    """No run is there that was not measured."""
    sentence = "Every row belongs to a measured run."
    return [_expect("ExpectColumnValuesToBeInSet", sentence, column="run", value_set=list(runs))]


def filled(columns: Iterable[str]) -> list[Expectation]:
    """No missing value."""
    return [
        _expect("ExpectColumnValuesToNotBeNull", f"{column} is never missing.", column=column)
        for column in columns
    ]


def within(
    columns: Sequence[str], lowest: float, highest: float | None = None
) -> list[Expectation]:
    """Numbers that are there and within limits."""
    return [*filled(columns), *known(columns, lowest, highest)]


def known(columns: Sequence[str], lowest: float, highest: float | None = None) -> list[Expectation]:
    """Numbers that are within limits wherever they are there."""
    span = f"at least {lowest:g}" if highest is None else f"between {lowest:g} and {highest:g}"
    limits = {"min_value": lowest, "max_value": highest}
    return [
        _expect("ExpectColumnValuesToBeBetween", f"{c} is {span}.", column=c, **limits)
        for c in columns
    ]


def descending(*columns: str) -> list[Expectation]:
    """In every row, each of these columns is at least the next one."""
    return [
        at_least(larger, smaller, f"{larger} is at least {smaller}.")
        for larger, smaller in pairwise(columns)
    ]


def at_least(larger: str, smaller: str, sentence: str) -> Expectation:
    """One column is at least another wherever both are there."""
    return _expect(
        "ExpectColumnPairValuesAToBeGreaterThanB",
        sentence,
        column_A=larger,
        column_B=smaller,
        or_equal=True,
        ignore_row_if="either_value_is_missing",
    )


def matching(column: str, pattern: str, sentence: str) -> Expectation:
    """Text that matches a regular expression."""
    return _expect("ExpectColumnValuesToMatchRegex", sentence, column=column, regex=pattern)


def _expect(name: str, sentence: str, **arguments: Any) -> Expectation:
    import great_expectations.expectations as gxe

    made: Expectation = getattr(gxe, name)(**arguments, notes=sentence)
    return made
