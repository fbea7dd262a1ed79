"""How a rate goes on: an autoregressive forecast of its changes, and a straight line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

MOST_LAGS = 5
"""``train_arima``: max_p."""
LEAST_CHANGES = 10
"""Fewer say nothing of how one follows from the others: then the last value goes on."""


def autoregressive(values: Sequence[float], steps: int) -> list[float]:
    """ARIMA(p, 1, 0), never below 0: its changes by Levinson and Durbin, p of 0 to 5 by AIC.

    Raises IndexError without a value.
    """
    changes = [after - before for before, after in pairwise(values)]
    mean = fmean(changes) if len(changes) >= LEAST_CHANGES else 0.0
    weights = _weights([change - mean for change in changes])
    recent = [change - mean for change in changes[-MOST_LAGS:]]
    value, predicted = values[-1], []
    for _ in range(steps):
        change = sum(w * c for w, c in zip(weights, reversed(recent), strict=False))
        recent.append(change)
        value += mean + change
        predicted.append(max(0.0, value))
    return predicted


def _weights(changes: Sequence[float]) -> list[float]:
    """The weights of the last changes, the latest first; none where none helps."""
    count = len(changes)
    if count < LEAST_CHANGES:
        return []
    covariance = [
        sum(changes[i] * changes[i + lag] for i in range(count - lag)) / count
        for lag in range(MOST_LAGS + 1)
    ]
    error = covariance[0]
    if error <= 1e-12:
        return []
    weights: list[float] = []
    best, lowest = weights, count * math.log(error)
    for lags in range(1, MOST_LAGS + 1):
        left = covariance[lags] - sum(w * covariance[lags - 1 - i] for i, w in enumerate(weights))
        reflected = left / error
        weights = [
            *(w - reflected * v for w, v in zip(weights, reversed(weights), strict=True)),
            reflected,
        ]
        error *= 1 - reflected**2
        if error <= 1e-12:
            return weights
        if (criterion := count * math.log(error) + 2 * lags) < lowest:
            best, lowest = weights, criterion
    return best


def line(values: Sequence[float], steps: int) -> list[float]:
    """The line of least squares through the values, continued; never below 0."""
    count = len(values)
    middle, mean = (count - 1) / 2, fmean(values)
    spread = sum((i - middle) ** 2 for i in range(count))
    slope = sum((i - middle) * (v - mean) for i, v in enumerate(values)) / spread if spread else 0
    return [max(0.0, mean + slope * (count + step - middle)) for step in range(steps)]
