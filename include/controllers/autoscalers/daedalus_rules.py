"""What Daedalus knows of one operator, and the smallest scale-out that it accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

CHECKPOINT_S = 10
"""``PredictRecoveryTime``: messages since the last checkpoint are processed again."""
NEVER_S = 3600


@dataclass(frozen=True, slots=True)
class FittedLine:
    """Throughput of an instance against its utilisation, one observation at a time
    (``RegressionModel``)."""

    count: int = 0
    mean_x: float = 0.0
    mean_y: float = 0.0
    cov_xy: float = 0.0
    var_x: float = 0.0

    def with_one(self, x: float, y: float) -> FittedLine:
        """One observation more."""
        count, dx, dy = self.count + 1, x - self.mean_x, y - self.mean_y
        kept = (count - 1) / count
        return FittedLine(
            count,
            self.mean_x + dx / count,
            self.mean_y + dy / count,
            self.cov_xy + (kept * dx * dy - self.cov_xy) / count,
            self.var_x + (kept * dx * dx - self.var_x) / count,
        )

    def at(self, x: float) -> float:
        """Throughput at a utilisation; in proportion as long as there is one point only."""
        if self.var_x <= 1e-9:
            return self.mean_y / self.mean_x * x if self.mean_x > 0 else 0.0
        return max(0.0, self.mean_y + self.cov_xy / self.var_x * (x - self.mean_x))


@dataclass(frozen=True, slots=True)
class Known:
    """Of one operator: the line, capacities per second by instances, arrivals per second by look,
    the forecast of the last look, and when it was rescaled."""

    line: FittedLine = field(default_factory=FittedLine)
    observed: Mapping[int, float] = field(default_factory=dict)
    each: float = 0.0
    workload: tuple[float, ...] = ()
    forecast: tuple[float, ...] = ()
    rescaled_s: float = -1e9

    def with_capacity(self, instances: int, per_s: float) -> Known:
        """``update_capacity_models``: what was observed fades by half."""
        before = self.observed.get(instances, per_s)
        observed = dict(self.observed) | {instances: (before + per_s) / 2}
        return replace(self, observed=observed, each=per_s / instances)

    def capacity_per_s(self, instances: int) -> float:
        """What was observed with so many, else in proportion to those that run."""
        return self.observed.get(instances, self.each * instances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a scale-out is judged by; the forecast has a rate for every second."""

    known: Known
    current: int
    workload_per_s: float
    lag: int
    forecast: np.ndarray
    up_s: int
    down_s: int

    def recovery_s(self, instances: int) -> int:
        """``predict_recovery_time``: until what has piled up is worked off."""
        stopped_s = self.down_s if instances < self.current else self.up_s
        piled_up = self.workload_per_s * CHECKPOINT_S + self.forecast[:stopped_s].sum() + self.lag
        spare = self.known.capacity_per_s(instances) - self.forecast[stopped_s:]
        done = np.maximum(spare, 0.0).cumsum() > piled_up
        # The source counts the downtime once in the time stamp and once beside it.
        return int(done.argmax()) + 2 * stopped_s if done.any() else NEVER_S


def scale_out(of: Outlook, since_s: float, most: int, settle_s: float, recover_s: float) -> int:
    """``determine_scaleout``: the fewest instances that do, or ``most``.

    ``since_s`` is how long ago the last one was; before ``settle_s`` only what must be is done.
    """
    highest = float(of.forecast.max())
    capacity = of.known.capacity_per_s
    now = capacity(of.current)
    if since_s < settle_s and now > of.workload_per_s and now > of.forecast[:60].max():
        return of.current
    for instances in range(most + 1):
        if capacity(instances) <= of.workload_per_s:
            continue
        recovery_s = of.recovery_s(instances)
        if recovery_s > recover_s or capacity(instances) < of.forecast[:recovery_s].max():
            continue
        if instances == of.current:
            return instances
        if instances < of.current and now < of.lag:
            continue
        if capacity(instances) > highest:
            return instances
    return most


def percentage_error(workload: float, forecast: Sequence[float]) -> float:
    """``wape`` of what was forecast for this look; infinite where nothing was."""
    if not forecast or workload <= 0:
        return float("inf")
    return abs(workload - forecast[0]) / workload
