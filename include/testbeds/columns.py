"""Text columns as codes and names, so that a testbed need not build a million strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Coded(NamedTuple):
    """A column of text: row ``i`` is ``names[codes[i]]``."""

    codes: np.ndarray
    names: tuple[str, ...]


def numbered(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct numbers, ascending, and the position of each row's number among them.

    Counts instead of sorting, because hosts and instances are numbered from 1.
    """
    there = np.bincount(numbers) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]


def coded(numbers: np.ndarray, template: str) -> Coded:
    """Numbers as text, formatted by ``template``."""
    distinct, codes = numbered(numbers)
    return Coded(codes, tuple(template.format(number) for number in distinct))


def as_columns(rows: Sequence[tuple[Any, ...]], titles: Sequence[str]) -> dict[str, list[Any]]:
    """Rows as columns, one per title."""
    columns = zip(*rows, strict=True) if rows else [()] * len(titles)
    return dict(zip(titles, map(list, columns), strict=True))


def as_text(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of codes as columns of names, as a stored table has them."""
    return {
        name: np.array(column.names)[column.codes] if isinstance(column, Coded) else column
        for name, column in columns.items()
    }
