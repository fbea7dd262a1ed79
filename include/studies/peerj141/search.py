"""Find the parameter values that fit the published figures, in spite of noisy runs.

Three runs of one cell scatter by a point and by several percent, so comparing parameter sets one
by one fits noise. Instead every published cell gets a quadratic surface over the parameters, by
least squares over a design of many sets with rotating seeds, and the loss is minimised on the
surfaces. That happens twice, the second time closer around what the first found.

How many instances fit a host jumps, which no smooth surface shows. So the two parameters that
decide it are refined by measuring their neighbours with all seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from include.model.errors import SpecError
from include.results.tables.staged import gathered
from include.studies.peerj141.calibration import (
    CONTROLLERS,
    FITTED,
    LIMITS,
    PARAMETERS,
    START,
    Cell,
    error_of,
    published_means,
    specs,
)
from include.studies.peerj141.published import KINDS, kind_of

REACHES = (0.25, 0.125)
"""How far the two designs reach from their middle, as a share of each parameter's range."""
REFINED = ("service_scale", "memory_factor")
STEPS = (0.05, 0.025)
"""How far refinement steps, as shares of a parameter's range."""
_STARTS = 1000
"""Places on the surfaces that are looked at before the best is improved."""

Report = Callable[[int, Mapping[str, float]], None]
"""Hears of every set that is measured: its number in the designs, or -1 in refinement."""


def search(*, evaluations: int, seeds: int, pool: Executor, report: Report) -> dict[str, float]:
    """The best values found; the same call finds the same values.

    ``evaluations`` parameter sets are measured, half of them in each round, every one with two
    of ``seeds`` seeds. Raises SpecError when they are too few for a quadratic surface.
    """
    per_round = evaluations // len(REACHES)
    needed = len(REACHES) * _terms(len(PARAMETERS))
    if per_round < _terms(len(PARAMETERS)):
        problem = f"give {needed} or more for two quadratic surfaces, got {evaluations}"
        raise SpecError("evaluations", [problem])
    middle = dict(START)
    for turn, reach in enumerate(REACHES):
        low, high = _box(middle, reach)
        sets = _design(low, high, per_round, turn)
        measured: list[dict[Cell, float]] = []
        for i, values in enumerate(sets):
            number = turn * per_round + i
            own = sorted({1 + number % seeds, 1 + (number + max(1, seeds // 2)) % seeds})
            points = specs(FITTED, CONTROLLERS, own)
            measured.append(published_means(values, points, pool))
            report(number, values)
        middle = _minimum(sets, measured, low, high)
    lowest = {name: round(value, 3) for name, value in middle.items()}
    return refine([START, lowest], seeds=seeds, pool=pool, report=report)


def refine(
    candidates: Sequence[Mapping[str, float]], *, seeds: int, pool: Executor, report: Report
) -> dict[str, float]:
    """The best of the candidates and its neighbours, each measured with all seeds.

    A step is kept when the loss falls, and the search goes on from there.
    """
    points = specs(FITTED, CONTROLLERS, range(1, seeds + 1))
    bounds = {p.name: (p.low, p.high) for p in PARAMETERS}

    def measured_loss(tried: Mapping[str, float]) -> float:
        report(-1, tried)
        means = published_means(tried, points, pool)
        errors = np.array([error_of(cell, mean) for cell, mean in means.items()])
        return _loss(errors, _groups(list(means)))

    losses = [measured_loss(values) for values in candidates]
    lowest = min(losses)
    best = dict(candidates[losses.index(lowest)])
    for share in STEPS:
        for name in REFINED:
            low, high = bounds[name]
            for sign in (-1, 1):
                step = sign * share * (high - low)
                tried = {**best, name: round(min(high, max(low, best[name] + step)), 4)}
                loss = measured_loss(tried)
                if loss < lowest:
                    best, lowest = tried, loss
                    break
    return best


def _box(middle: Mapping[str, float], reach: float) -> tuple[dict[str, float], dict[str, float]]:
    """Lowest and highest values of a design, within the bounds of the parameters."""
    low = {p.name: max(p.low, middle[p.name] - reach * (p.high - p.low)) for p in PARAMETERS}
    high = {p.name: min(p.high, middle[p.name] + reach * (p.high - p.low)) for p in PARAMETERS}
    return low, high


def _design(
    low: Mapping[str, float], high: Mapping[str, float], count: int, turn: int
) -> list[dict[str, float]]:
    """FreeParameter sets that fill a box evenly: scrambled Halton points."""
    names = [p.name for p in PARAMETERS]
    unit = qmc.Halton(len(names), rng=turn).random(count)
    scaled = qmc.scale(unit, list(low.values()), list(high.values()))
    return [dict(zip(names, map(float, row), strict=True)) for row in scaled]


def _terms(parameters: int) -> int:
    return (parameters + 1) * (parameters + 2) // 2


def _quadratic(unit: np.ndarray) -> np.ndarray:
    """1, x_i and x_i x_j of every row. Shape (rows, terms)."""
    rows, size = unit.shape
    first, second = np.triu_indices(size)
    return np.hstack([np.ones((rows, 1)), unit, unit[:, first] * unit[:, second]])


def _minimum(
    sets: list[dict[str, float]],
    measured: list[dict[Cell, float]],
    low: Mapping[str, float],
    high: Mapping[str, float],
) -> dict[str, float]:
    """Where the loss is lowest in the box, by the surfaces of all cells."""
    names = list(low)
    floor = np.array([low[name] for name in names])
    width = np.array([high[name] - low[name] for name in names])
    places = (np.array([[one[name] for name in names] for one in sets]) - floor) / width * 2 - 1
    cells = list(measured[0])
    errors = np.array([[error_of(cell, one[cell]) for cell in cells] for one in measured])
    surfaces, *_ = np.linalg.lstsq(_quadratic(places), errors, rcond=None)
    groups = _groups(cells)

    def loss(place: np.ndarray) -> float:
        return _loss((_quadratic(place[None, :]) @ surfaces)[0], groups)

    starts = qmc.Halton(len(names), rng=0).random(_STARTS) * 2 - 1
    start = starts[np.argmin([_loss(row, groups) for row in _quadratic(starts) @ surfaces])]
    best = minimize(loss, start, bounds=[(-1, 1)] * len(names))
    return dict(zip(names, map(float, floor + (best.x + 1) / 2 * width), strict=True))


def _groups(cells: list[Cell]) -> list[tuple[list[int], float]]:
    """Cells of one controller and kind, by place, with the limit of their mean absolute error."""
    places = gathered(
        ((controller, kind_of(metric)), place)
        for place, (controller, _, _, metric) in enumerate(cells)
    )
    return [(own, LIMITS[name][KINDS.index(kind)]) for (name, kind), own in places.items()]


def _loss(errors: np.ndarray, groups: list[tuple[list[int], float]]) -> float:
    """Mean absolute errors as shares of their limits, summed, and smooth around 0.

    The square root adds half a limit of scatter to every error: what a mean of three runs is
    off anyway, so an error far below that counts little.
    """
    return float(
        sum(np.sqrt(errors[own] ** 2 + (limit / 2) ** 2).mean() / limit for own, limit in groups)
    )
