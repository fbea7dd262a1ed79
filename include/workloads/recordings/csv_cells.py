"""Cells of a table as numbers, and what is wrong with them, by the line they stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from include.workloads.recordings.recording import FloatArray

ABSENT = {"", "nan", "na", "n/a", "null", "none", "-"}
"""What stands where nothing was read. It is never taken for zero."""
MOST_SHOWN = 10
MOST_LINES = 5
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_INFINITE = r"[+-]?inf(inity)?"
_COMMA = r"[+-]?\d[\d.]*(,\d+)+"

Place = Callable[[int], str]
"""Says where a row is: its line in the file."""


def numbers(column: str, cells: pd.Series, place: Place) -> tuple[FloatArray, list[str]]:
    """The cells as numbers, NaN where absent, and one problem per kind of wrong cell."""
    if cells.dtype != object:
        values = cells.to_numpy(dtype=np.float64)
        infinite = np.isinf(values)
        comma = text = np.zeros(values.size, dtype=bool)
    else:
        bare = cells.fillna("").str.strip()
        is_number = bare.str.fullmatch(_NUMBER)
        values = bare.where(is_number, "nan").to_numpy().astype(np.float64)
        wrong = ~(is_number | bare.str.lower().isin(ABSENT))
        infinite = (wrong & bare.str.fullmatch(_INFINITE, case=False)).to_numpy() | np.isinf(values)
        comma = (wrong & bare.str.fullmatch(_COMMA)).to_numpy()
        text = wrong.to_numpy() & ~(comma | infinite)
    kinds = (
        (text, "is no number ({}); leave cells empty where nothing was read"),
        (comma, "has a comma ({}); write 1234.5 with a point and no other marks"),
        (infinite, "is infinite; leave cells empty where nothing was read"),
    )
    problems = []
    for mask, words in kinds:
        if rows := np.flatnonzero(mask).tolist():
            first = repr(cells.tolist()[rows[0]])[:40]
            problems.append(f"{places(rows, place)}: {column} {words.format(first)}")
    return values, problems


def negatives(column: str, values: FloatArray, place: Place) -> list[str]:
    """The problem that readings are below 0, where any is."""
    rows = np.flatnonzero(values < 0).tolist()
    if not rows:
        return []
    how = "leave cells empty where nothing was read"
    return [f"{places(rows, place)}: {column} is negative ({values[rows[0]]:g}); {how}"]


def places(rows: Sequence[int], place: Place) -> str:
    """The first few of the places, and how many more there are."""
    shown = ", ".join(place(row) for row in sorted(rows)[:MOST_LINES])
    more = len(rows) - MOST_LINES
    return f"{shown} and {more} more" if more > 0 else shown


def shortened(problems: Iterable[str]) -> list[str]:
    """The first ten problems, and a sentence that counts the others."""
    listed = list(problems)
    more = len(listed) - MOST_SHOWN
    return listed if more <= 0 else [*listed[:MOST_SHOWN], f"and {more} more problems like these"]


def with_hint(problems: Sequence[str], hint: str) -> list[str]:
    """The problems, of which the last ends with what helps with any of them."""
    return [*problems[:-1], f"{problems[-1]} ({hint})"]
