"""How sure a verdict is: its mean errors over resampled seeds, and over every draw of three.

A verdict by three seeds hangs on which three. So the mean absolute errors are asked again of
other draws from the judging seeds: with replacement for an interval, and three at a time, as
many as the paper ran, for the share of such draws that would pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from include.studies.results import Rows

PUBLISHED_RUNS = 3
"""Behind every printed mean."""
CONFIDENCE = 0.95
RESAMPLES = 2000
MOST_DRAWS = 2000
"""Of three seeds each: every one up to 24 seeds, and a seeded choice of more."""

Cell = tuple[str, str, float | None, str]
"""Pattern, controller, BTU in minutes and metric: one row of the verdict."""


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Of a mean absolute error: its interval, and which draws of three seeds keep the limit."""

    low: float
    high: float
    draws: NDArray[np.bool_]

    @property
    def share(self) -> float:
        """The share of the draws that pass."""
        return float(self.draws.mean())


def errors_by_seed(verdict: Rows, metrics: Rows) -> dict[Cell, dict[int, float]]:
    """The error of every row of the verdict, by seed, in the unit of the row; {} without metrics.

    ``metrics`` are the figures of every run (table metrics); those of other topologies or
    options are none of a cell.
    """
    if not metrics:
        return {}
    seeds: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in metrics:
        if not row["variant"]:
            key = (row["pattern"], row["controller"], row["btu_min"], row["metric"])
            seeds.setdefault(key, {})[row["seed"]] = row["value"]
    lowest = min((key[2] for key in seeds), default=0.0)
    found = {}
    for row in verdict:
        key = (row["pattern"], row["controller"], row["btu_min"] or lowest, row["metric"])
        printed = row["published_mean"]
        scale = 1.0 if row["error_unit"] == "points" else 100 / printed
        found[cell_of(row)] = {
            seed: (value - printed) * scale for seed, value in sorted(seeds.get(key, {}).items())
        }
    return found


def cell_of(row: Mapping[str, Any]) -> Cell:
    """What names a row of the verdict."""
    return row["pattern"], row["controller"], row["btu_min"], row["metric"]


def spread(errors: Sequence[Mapping[int, float]], limit: float) -> SeedSpread | None:
    """The spread of the mean absolute error of some cells; None with fewer than four seeds.

    The mean of a cell is over seeds, the mean absolute error over cells. Seeds are drawn
    together for all cells; every call draws the same.
    """
    shared = sorted(set.intersection(*(set(one) for one in errors))) if errors else []
    if len(shared) <= PUBLISHED_RUNS:
        return None
    table = np.array([[one[seed] for seed in shared] for one in errors])
    picks = np.random.default_rng(0).integers(len(shared), size=(RESAMPLES, len(shared)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(_mean_absolute(table, picks), [tail, 1 - tail])
    threes = np.array(list(_threes(len(shared))))
    return SeedSpread(float(low), float(high), _mean_absolute(table, threes) <= limit)


def _threes(seeds: int) -> Iterator[tuple[int, ...]]:
    """Places of three seeds: every choice, or evenly spaced ones where they are too many."""
    step = -(-comb(seeds, PUBLISHED_RUNS) // MOST_DRAWS)
    return islice(combinations(range(seeds), PUBLISHED_RUNS), 0, None, step)


def _mean_absolute(table: NDArray[np.float64], picks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Per pick, the mean over cells of the absolute mean over its seeds. Shape (picks,)."""
    means: NDArray[np.float64] = np.abs(table[:, picks].mean(axis=2)).mean(axis=0)
    return means
