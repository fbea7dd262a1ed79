"""How sure a mean error is: its interval over the judging seeds, drawn with replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from include.studies.peerj141.published import error_of
from include.studies.results import Rows

CONFIDENCE = 0.95
RESAMPLES = 2000
FEWEST_SEEDS = 4
"""With fewer an interval says nothing."""

Cell = tuple[str, str, float | None, str]
"""Pattern, controller, BTU in minutes and metric: one row of the verdict."""


class Interval(NamedTuple):
    """Where a mean absolute error lies with 95 % confidence."""

    low: float
    high: float


def errors_by_seed(verdict: Rows, metrics: Rows) -> dict[Cell, dict[int, float]]:
    """The error of every row of the verdict, by seed, in the unit of the row.

    ``metrics`` are the figures of every run (table metrics); those of other topologies or
    options are none of a cell.
    """
    seeds: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in metrics:
        if not row["variant"]:
            seeds.setdefault(cell_of(row), {})[row["seed"]] = row["value"]
    lowest = min((key[2] for key in seeds), default=0.0)
    errors = {}
    for row in verdict:
        metric, printed = row["metric"], row["published_mean"]
        key = (row["pattern"], row["controller"], row["btu_min"] or lowest, metric)
        errors[cell_of(row)] = {
            seed: error_of(metric, printed, value)
            for seed, value in sorted(seeds.get(key, {}).items())
        }
    return errors


def cell_of(row: Mapping[str, Any]) -> Cell:
    """What names a row of the verdict."""
    return row["pattern"], row["controller"], row["btu_min"], row["metric"]


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
