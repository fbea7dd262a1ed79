"""Text columns as codes and names, so that a testbed need not build a million strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
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


def joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Columns of some parts of one table below each other; a part without columns has no rows."""
    parts = [part for part in parts if part]
    if len(parts) < 2:
        return dict(parts[0]) if parts else {}
    return {name: _one_column([part[name] for part in parts]) for name in parts[0]}


def _one_column(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], Coded):
        code_of: dict[str, int] = {}
        codes = [
            np.array(
                [code_of.setdefault(name, len(code_of)) for name in part.names], dtype=np.intp
            )[part.codes]
            for part in parts
        ]
        return Coded(np.concatenate(codes), tuple(code_of))
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [*chain.from_iterable(parts)]


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
