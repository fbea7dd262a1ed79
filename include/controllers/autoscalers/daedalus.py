"""Daedalus: self-adaptive horizontal autoscaling (Pfister et al., 2024; dos-group/daedalus)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from include.controllers.autoscalers import forecast
from include.controllers.autoscalers.base import Autoscaler, Recommendation, target_of
from include.controllers.autoscalers.rates import Counts, Rate, rates_since
from include.controllers.base import Gauge
from include.model.observation import Observation

KEPT = 120
"""Looks whose arrivals are remembered."""
HORIZON_S = 900.0
"""How far the forecast reaches (forecasting.py)."""
BAD_ERROR = 0.25
"""A forecast that was wrong by so large a part of the load gives way to a line (forecasting.py),"""
LINE_OVER = 5
"""which goes through so many looks,"""
LINE_S = 600.0
"""and so far."""
RECOVER_S = 600.0
"""A scale-out shall have caught up after so long (recovery_time.py, execution_manager.py)."""
WARM_UP_S = 120.0
"""Nothing is learned for so long after the start of the job, or a change (capacity.py)."""
BEGINS_S = -300.0
"""When it takes itself to have rescaled last as a run begins (execution_manager.py)."""
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
class OperatorHistory:
    """Of one operator: the line, capacities per second by instances, arrivals per second by look,
    the forecast of the last look, and when it was rescaled."""

    line: FittedLine = field(default_factory=FittedLine)
    observed: Mapping[int, float] = field(default_factory=dict)
    each: float = 0.0
    workload: tuple[float, ...] = ()
    forecast: tuple[float, ...] = ()
    rescaled_s: float = BEGINS_S

    def with_capacity(self, instances: int, per_s: float) -> OperatorHistory:
        """``update_capacity_models``: what was observed fades by half."""
        before = self.observed.get(instances, per_s)
        observed = dict(self.observed) | {instances: (before + per_s) / 2}
        return replace(self, observed=observed, each=per_s / instances)

    def capacity_per_s(self, instances: int) -> float:
        """What was observed with so many, else in proportion to those that run."""
        return self.observed.get(instances, self.each * instances)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOutForecast:
    """What a scale-out is judged by; the forecast has a rate for every second."""

    history: OperatorHistory
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
        spare = self.history.capacity_per_s(instances) - self.forecast[stopped_s:]
        done = np.maximum(spare, 0.0).cumsum() > piled_up
        # The source counts the downtime once in the time stamp and once beside it.
        return int(done.argmax()) + 2 * stopped_s if done.any() else NEVER_S


def scale_out(
    of: ScaleOutForecast, since_s: float, most: int, settle_s: float, recover_s: float
) -> int:
    """``determine_scaleout``: the fewest instances that do, or ``most``.

    ``since_s`` is how long ago the last one was; before ``settle_s`` only what must be is done.
    """
    highest = float(of.forecast.max())
    capacity = of.history.capacity_per_s
    now = capacity(of.current)
    if since_s < settle_s and now > of.workload_per_s and now > of.forecast[:60].max():
        return of.current
    for instances in range(most + 1):
        if capacity(instances) <= of.workload_per_s:
            continue
        recovery_s = of.recovery_s(instances)
        needed = of.forecast[: max(1, recovery_s)].max()
        if recovery_s > recover_s or capacity(instances) < needed:
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


@dataclass(frozen=True, slots=True)
class DaedalusMemory:
    """Counts of the last look, and the history of every operator."""

    counts: Counts = field(default_factory=dict)
    known: Mapping[str, OperatorHistory] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Daedalus(Autoscaler):
    """The fewest instances whose capacity exceeds the load now, and that of the forecast.

    Every operator is a job of its own. Nothing changes for ``wait_s`` after a change, and until
    ``settle_s`` only what must. The forecast is for HORIZON_S; one that was wrong by
    BAD_ERROR or more is replaced by a line over LINE_S. A scale-out shall recover within
    RECOVER_S from a downtime of ``up_s`` or ``down_s``. Nothing is learned for WARM_UP_S.
    """

    interval_s: float = 60.0
    wait_s: float = 180.0
    settle_s: float = 600.0
    up_s: int = 30
    down_s: int = 15
    max_instances: int = 18

    watches = "load, items/s"
    may_be_zero = frozenset({"wait_s", "settle_s", "up_s", "down_s"})

    def initial_memory(self) -> DaedalusMemory:
        return DaedalusMemory()

    def targets(
        self, memory: DaedalusMemory, seen: Observation
    ) -> tuple[DaedalusMemory, dict[str, Recommendation]]:
        counts, rates = rates_since(memory.counts, seen)
        histories, targets = dict(memory.known), dict[str, Recommendation]()
        for name, rate in rates.items():
            current = len(seen.serving(name))
            if not current:
                continue
            error = percentage_error(
                rate.arrived_per_s, histories.get(name, OperatorHistory()).forecast
            )
            now = self._analysed(histories.get(name, OperatorHistory()), rate, current, seen)
            since_s = seen.now_s - now.rescaled_s
            if since_s >= self.wait_s and now.capacity_per_s(current) > 0:
                lag = seen.operators[name].waiting_items
                outlook = self._outlook(now, current, rate, lag, good=error < BAD_ERROR)
                most = max(current, self.max_instances)
                wanted = scale_out(outlook, since_s, most, self.settle_s, RECOVER_S)
                if wanted != current:
                    now = replace(now, rescaled_s=seen.now_s)
                    detail = (
                        f"{name} gets {rate.arrived_per_s:.2f} items/s, {wanted} instances can do "
                        f"{now.capacity_per_s(wanted):.2f}"
                    )
                    targets[name] = target_of(current, wanted, detail)
            histories[name] = now
        return DaedalusMemory(counts, histories), targets

    def watched(self, memory: DaedalusMemory, seen: Observation, operator: str) -> Gauge | None:
        """The load against the capacity of the instances that there are."""
        rate = rates_since(memory.counts, seen)[1].get(operator)
        if rate is None:
            return None
        history, current = (
            memory.known.get(operator, OperatorHistory()),
            len(seen.serving(operator)),
        )
        return Gauge(rate.arrived_per_s, high=history.capacity_per_s(current) or None)

    def _analysed(
        self, history: OperatorHistory, rate: Rate, current: int, seen: Observation
    ) -> OperatorHistory:
        """The line, capacities and a forecast after one more look."""
        workload = (*history.workload, rate.arrived_per_s)[-KEPT:]
        steps = int(HORIZON_S / self.interval_s) + 1
        ahead = tuple(forecast.autoregressive(workload, steps))
        history = replace(history, workload=workload, forecast=ahead)
        warm = seen.now_s - max(history.rescaled_s, seen.job_started_s) >= WARM_UP_S
        if not warm or rate.busy_share is None or rate.busiest_share is None or not rate.ready:
            return history
        each = rate.completed_per_s / rate.ready
        fitted = history.line.with_one(rate.busy_share, each)
        # Where one instance works more than the others, these cannot be used up.
        full = 1 - (rate.busiest_share - rate.busy_share)
        history = replace(history, line=fitted)
        return history.with_capacity(current, current * fitted.at(full))

    def _outlook(
        self, history: OperatorHistory, current: int, rate: Rate, lag: int, *, good: bool
    ) -> ScaleOutForecast:
        steps = int(LINE_S / self.interval_s) + 1
        ahead = history.forecast if good else forecast.line(history.workload[-LINE_OVER:], steps)
        horizon_s = int(HORIZON_S if good else LINE_S)
        seconds = np.repeat(np.array(ahead), max(1, round(self.interval_s)))[:horizon_s]
        return ScaleOutForecast(
            history=history,
            current=current,
            workload_per_s=rate.arrived_per_s,
            lag=lag,
            forecast=seconds,
            up_s=self.up_s,
            down_s=self.down_s,
        )
