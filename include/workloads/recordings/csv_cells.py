"""Cells of a table as numbers, and what is wrong with them, by the line they stand in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from include.workloads.recordings.recording import FloatArray

ABSENT = {"", "nan", "na", "n/a", "null", "none", "-"}
"""What stands where nothing was read. It is never taken for zero."""
MOST_SHOWN = 10
MOST_LINES = 5
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?\d[\d.]*(,\d+)+")

Cell = str | float | None
Place = Callable[[int], str]
"""Says where a row is: its line in the file."""


def numbers(column: str, cells: Sequence[Cell], place: Place) -> tuple[FloatArray, list[str]]:
    """The cells as numbers, NaN where absent, and one problem per kind of wrong cell."""
    values = np.full(len(cells), np.nan)
    text: list[int] = []
    comma: list[int] = []
    infinite: list[int] = []
    for i, cell in enumerate(cells):
        if isinstance(cell, float):
            values[i] = cell
            continue
        bare = cell.strip() if cell else ""
        if bare.lower() in ABSENT:
            continue
        if _NUMBER.fullmatch(bare):
            values[i] = float(bare)
        elif _INFINITE.fullmatch(bare):
            infinite.append(i)
        else:
            (comma if _COMMA.fullmatch(bare) else text).append(i)
    infinite += np.flatnonzero(np.isinf(values)).tolist()
    kinds = (
        (text, "is no number ({}); leave cells empty where nothing was read"),
        (comma, "has a comma ({}); write 1234.5 with a point and no other marks"),
        (infinite, "is infinite; leave cells empty where nothing was read"),
    )
    return values, [
        f"{places(rows, place)}: {column} {words.format(repr(cells[rows[0]])[:40])}"
        for rows, words in kinds
        if rows
    ]


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
