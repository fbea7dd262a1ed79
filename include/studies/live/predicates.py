"""The predicates behind claims.yaml: each asks LiveMetrics and says yes or no, and the numbers."""

from __future__ import annotations

from functools import partial

from include.studies.base import Answer
from include.studies.live.metrics import COMPLIANCE, LiveMetrics

COMPLIANCE_POINTS, INSTANCES_PERCENT = 5.0, 15.0
"""How far the simulator may be off: points of compliance, percent of all instances."""


def _compliance_is_near(metrics: LiveMetrics, level: str) -> Answer:
    """The mean of the simulations is within so many points."""
    row = metrics.row(COMPLIANCE[level])
    off = abs(row["mean"] - row["live"])
    detail = f"{row['live']:.1f} % live, {row['mean']:.1f} % simulated: {off:.1f} points off"
    return off <= COMPLIANCE_POINTS, detail


_real_time_is_near = partial(_compliance_is_near, level="real_time")
_near_real_time_is_near = partial(_compliance_is_near, level="near_real_time")
_relaxed_is_near = partial(_compliance_is_near, level="relaxed")


def _instances_are_near(metrics: LiveMetrics) -> Answer:
    """The mean of the simulations is within so many percent."""
    row = metrics.row("instances")
    off = 100 * abs(row["mean"] / row["live"] - 1)
    detail = f"{row['live']:.1f} live, {row['mean']:.1f} simulated: {off:.1f} % off"
    return off <= INSTANCES_PERCENT, detail
