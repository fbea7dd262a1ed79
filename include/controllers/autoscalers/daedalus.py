"""Daedalus: self-adaptive horizontal autoscaling (Pfister et al., 2024; dos-group/daedalus)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from include.controllers.autoscalers import forecast
from include.controllers.autoscalers.base import Autoscaler, Recommendation, target_of
from include.controllers.autoscalers.daedalus_rules import (
    Known,
    Outlook,
    percentage_error,
    scale_out,
)
from include.controllers.autoscalers.rates import Counts, Rate, rates_since
from include.controllers.base import Gauge
from include.model.observation import Observation

KEPT = 120
"""Looks whose arrivals are remembered."""
LINE_OVER = 5
"""Looks that the line goes through when the forecast was bad."""


@dataclass(frozen=True, slots=True)
class DaedalusMemory:
    """Counts of the last look, and what is known by operator."""

    counts: Counts = field(default_factory=dict)
    known: Mapping[str, Known] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Daedalus(Autoscaler):
    """The fewest instances whose capacity exceeds the load now, and that of the forecast.

    Every operator is a job of its own. Nothing changes for ``wait_s`` after a change, and until
    ``settle_s`` only what must. The forecast is for ``horizon_s``; one that was wrong by
    ``bad_error`` or more is replaced by a line over ``line_s``. A scale-out shall recover within
    ``recover_s`` from a downtime of ``up_s`` or ``down_s``. Nothing is learned for ``warm_up_s``.
    """

    interval_s: float = 60.0
    wait_s: float = 180.0
    settle_s: float = 600.0
    recover_s: float = 600.0
    horizon_s: float = 900.0
    line_s: float = 600.0
    bad_error: float = 0.25
    up_s: int = 30
    down_s: int = 15
    warm_up_s: float = 120.0
    max_instances: int = 18

    watches = "load, items/s"
    may_be_zero = frozenset({"wait_s", "settle_s", "up_s", "down_s", "warm_up_s"})

    def initial_memory(self) -> DaedalusMemory:
        """Nothing was measured."""
        return DaedalusMemory()

    def targets(
        self, memory: DaedalusMemory, seen: Observation
    ) -> tuple[DaedalusMemory, dict[str, Recommendation]]:
        """Monitor, analyse and plan every operator."""
        counts, rates = rates_since(memory.counts, seen)
        known, targets = dict(memory.known), dict[str, Recommendation]()
        for name, rate in rates.items():
            current = len(seen.serving(name))
            if not current:
                continue
            error = percentage_error(rate.arrived_per_s, known.get(name, Known()).forecast)
            now = self._analysed(known.get(name, Known()), rate, current, seen.now_s)
            since_s = seen.now_s - now.rescaled_s
            if since_s >= self.wait_s and now.capacity_per_s(current) > 0:
                lag = seen.operators[name].waiting_items
                outlook = self._outlook(now, current, rate, lag, good=error < self.bad_error)
                most = max(current, self.max_instances)
                wanted = scale_out(outlook, since_s, most, self.settle_s, self.recover_s)
                if wanted != current:
                    now = replace(now, rescaled_s=seen.now_s)
                    told = (
                        f"{name} gets {rate.arrived_per_s:.2f} items/s, {wanted} instances can do "
                        f"{now.capacity_per_s(wanted):.2f}"
                    )
                    targets[name] = target_of(current, wanted, told)
            known[name] = now
        return DaedalusMemory(counts, known), targets

    def watched(self, memory: DaedalusMemory, seen: Observation, operator: str) -> Gauge | None:
        """The load against the capacity of the instances that there are."""
        rate = rates_since(memory.counts, seen)[1].get(operator)
        if rate is None:
            return None
        known, current = memory.known.get(operator, Known()), len(seen.serving(operator))
        return Gauge(rate.arrived_per_s, high=known.capacity_per_s(current) or None)

    def _analysed(self, known: Known, rate: Rate, current: int, now_s: float) -> Known:
        """The line, capacities and a forecast after one more look."""
        workload = (*known.workload, rate.arrived_per_s)[-KEPT:]
        steps = int(self.horizon_s / self.interval_s) + 1
        ahead = tuple(forecast.autoregressive(workload, steps))
        known = replace(known, workload=workload, forecast=ahead)
        warm = now_s - known.rescaled_s >= self.warm_up_s
        if not warm or rate.busy_share is None or rate.busiest_share is None or not rate.ready:
            return known
        each = rate.completed_per_s / rate.ready
        fitted = known.line.with_one(rate.busy_share, each)
        # Where one instance works more than the others, these cannot be used up.
        full = 1 - (rate.busiest_share - rate.busy_share)
        known = replace(known, line=fitted)
        return known.with_capacity(current, current * fitted.at(full))

    def _outlook(self, known: Known, current: int, rate: Rate, lag: int, *, good: bool) -> Outlook:
        steps = int(self.line_s / self.interval_s) + 1
        ahead = known.forecast if good else forecast.line(known.workload[-LINE_OVER:], steps)
        horizon_s = int(self.horizon_s if good else self.line_s)
        seconds = np.repeat(np.array(ahead), max(1, round(self.interval_s)))[:horizon_s]
        return Outlook(
            known=known,
            current=current,
            workload_per_s=rate.arrived_per_s,
            lag=lag,
            forecast=seconds,
            up_s=self.up_s,
            down_s=self.down_s,
        )
