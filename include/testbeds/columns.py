"""Columns of text as codes and names: what a testbed hands over instead of a million strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Coded(NamedTuple):
    """Row ``i`` reads ``names[codes[i]]``."""

    codes: np.ndarray
    names: tuple[str, ...]


def numbered(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that occur, ascending, and the place of each row's among them.

    Hosts and instances are numbered from 1, so this counts, which is faster than to sort.
    """
    there = np.bincount(numbers) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]


def coded(numbers: np.ndarray, template: str) -> Coded:
    """Numbers as text, each through ``template`` (one ``{}``)."""
    distinct, codes = numbered(numbers)
    return Coded(codes, tuple(template.format(number) for number in distinct))


def as_columns(rows: Sequence[tuple[Any, ...]], titles: Sequence[str]) -> dict[str, list[Any]]:
    """Rows as columns; empty ones without a row."""
    columns = zip(*rows, strict=True) if rows else [()] * len(titles)
    return dict(zip(titles, map(list, columns), strict=True))
