"""Detects loads that repeat, their period and the next rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

REMEMBERED_S = 7200.0
"""Rates of sources are kept this long, so the period may be up to an hour."""
ROUND_AT_LEAST_S = 120.0
"""Shortest period, and the interval of the checks for one, which take time and seldom change."""
WATCHED_AT_LEAST_S = 900.0
"""A load must have repeated for at least this long, and for one period, to count as periodic."""
SURER_THAN_NOW = 0.5
"""Largest error of the rates one period ago, relative to the error of those a minute ago."""
CLEARLY_BETTER = 0.8
"""A longer period needs an error of at most this share of a shorter one's."""
MINUTE_S = 60.0


def remembered(
    recent: tuple[tuple[float, ...], ...], rates: Sequence[float], steps: int, step_s: float
) -> tuple[tuple[float, ...], ...]:
    """Append ``rates`` to ``recent``, once for each of the ``steps`` since the last observation."""
    return (*recent, *[tuple(rates)] * steps)[-round(REMEMBERED_S / step_s) :]


def round_of(recent: Sequence[Sequence[float]], step_s: float) -> int:
    """Period of the load in steps, or 0 if it does not repeat.

    ``recent`` are rates of every source, ``step_s`` seconds apart, the latest last. Compares the
    load one period ago, as a forecast, with the load a minute ago.
    """
    load = np.array([sum(rates) for rates in recent])
    watched = int(WATCHED_AT_LEAST_S / step_s)
    minute = max(1, round(MINUTE_S / step_s))
    best_steps, least_off = 0, np.inf
    for steps in range(max(1, int(ROUND_AT_LEAST_S / step_s)), len(load) // 2 + 1):
        span = max(steps, watched)
        if span + max(steps, minute) > len(load):
            break
        off = _off(load, span, steps)
        if off < CLEARLY_BETTER * least_off and off < SURER_THAN_NOW * _off(load, span, minute):
            best_steps, least_off = steps, off
    return best_steps


def ahead(recent: Sequence[Sequence[float]], round_steps: int, steps: int) -> NDArray[np.float64]:
    """Forecast of the next ``steps``: rates one period ago. Shape (steps, sources).

    At most one period; empty if the load does not repeat.
    """
    begin = len(recent) - round_steps
    return np.array(recent[begin : begin + min(steps, round_steps)], dtype=np.float64)


def _off(load: NDArray[np.float64], span: int, back: int) -> float:
    """Mean absolute difference to the load ``back`` steps earlier, over the last ``span`` steps."""
    since = len(load) - span
    return float(np.abs(load[since:] - load[since - back : len(load) - back]).sum()) / span
