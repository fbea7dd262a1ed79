"""How sure a mean error is: its interval over the judging seeds, drawn with replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
RESAMPLES = 2000
FEWEST_SEEDS = 4
"""With fewer an interval says nothing."""


class Interval(NamedTuple):
    """Where a mean absolute error lies with 95 % confidence."""

    low: float
    high: float


def interval(errors: Sequence[Mapping[int, float]]) -> Interval | None:
    """The interval of the mean absolute error of some cells; None with fewer than four seeds.

    The mean of a cell is over seeds, the mean absolute error over cells. Seeds are drawn
    together for all cells; every call draws the same.
    """
    shared = sorted(set.intersection(*(set(of_cell) for of_cell in errors))) if errors else []
    if len(shared) < FEWEST_SEEDS:
        return None
    table = np.array([[of_cell[seed] for seed in shared] for of_cell in errors])
    picks = np.random.default_rng(0).integers(len(shared), size=(RESAMPLES, len(shared)))
    means = np.abs(table[:, picks].mean(axis=2)).mean(axis=0)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high))
