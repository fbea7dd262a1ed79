"""Loads that repeat, how long a round takes and what comes next; and loads that waver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

REMEMBERED_S = 7200.0
"""So long are rates of sources remembered, so rounds of up to an hour are found."""
ROUND_AT_LEAST_S = 120.0
WATCHED_AT_LEAST_S = 900.0
"""A round must have come back for so long, and for as long as it takes, to be believed."""
SURER_THAN_NOW = 0.5
"""It must be at most so far off as what a minute before was, where both are forecasts of now."""
CLEARLY_BETTER = 0.8
"""A longer round is believed only if it is off by at most this share of what a shorter one is."""
MINUTE_S = 60.0
WAVERING_S = 300.0
"""Where a load wavers, what came for so long says more than what comes now."""
AHEAD_S = 600.0
"""About the next so many seconds: a host is leased for no less."""


def remembered(
    recent: tuple[tuple[float, ...], ...], rates: Sequence[float], since_s: float, step_s: float
) -> tuple[tuple[float, ...], ...]:
    """``recent`` with the rates since the last look: once for every step that it took."""
    steps = max(1, round(since_s / step_s))
    return (*recent, *[tuple(rates)] * steps)[-round(REMEMBERED_S / step_s) :]


def round_of(recent: Sequence[Sequence[float]], step_s: float) -> int:
    """Steps after which the load comes again, or 0 where it does not.

    ``recent`` are rates of every source, ``step_s`` seconds apart, the latest last. The load of one
    round ago is taken as a forecast of what came since, and held against that of a minute ago.
    """
    load = np.array([sum(rates) for rates in recent])
    watched = int(WATCHED_AT_LEAST_S / step_s)
    minute = max(1, round(MINUTE_S / step_s))
    found, least_off = 0, np.inf
    for steps in range(max(1, int(ROUND_AT_LEAST_S / step_s)), len(load) // 2 + 1):
        span = max(steps, watched)
        if span + max(steps, minute) > len(load):
            break
        off, off_by_now = (_off(load, span, back) for back in (steps, minute))
        if off < SURER_THAN_NOW * off_by_now and off < CLEARLY_BETTER * least_off:
            found, least_off = steps, off
    return found


def wavers(recent: Sequence[Sequence[float]], step_s: float) -> bool:
    """Whether what comes now says little about what comes next.

    It does if the mean of the last minutes was, over an hour or more, clearly less far off as a
    forecast of the mean load of the next ones. So it is where a load jitters around what it is.
    """
    load = np.array([sum(rates) for rates in recent])
    before, after = max(1, round(WAVERING_S / step_s)), max(1, round(AHEAD_S / step_s))
    if len(load) < round(3600.0 / step_s):
        return False
    so_far = np.concatenate([[0.0], np.cumsum(load)])
    at = np.arange(before, len(load) - after + 1)
    came = (so_far[at + after] - so_far[at]) / after
    mean = (so_far[at] - so_far[at - before]) / before
    off, off_by_now = (float(np.abs(one - came).mean()) for one in (mean, load[at - 1]))
    return off < CLEARLY_BETTER * off_by_now


def ahead(recent: Sequence[Sequence[float]], round_steps: int, steps: int) -> NDArray[np.float64]:
    """Rates of every source in the next ``steps``, one round ago. Shape (steps, sources).

    At most one round, and none where the load does not repeat.
    """
    begin = len(recent) - round_steps
    return np.array(recent[begin : begin + min(steps, round_steps)], dtype=np.float64)


def _off(load: NDArray[np.float64], span: int, back: int) -> float:
    """How far the load was from that of ``back`` steps before, on average over ``span`` steps."""
    since = len(load) - span
    return float(np.abs(load[since:] - load[since - back : len(load) - back]).mean())
