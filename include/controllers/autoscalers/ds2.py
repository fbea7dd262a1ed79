"""DS2: three steps is all you need (Kalavri et al., OSDI 2018; strymon-system/ds2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from include.controllers.autoscalers.base import Autoscaler, Recommendation, target_of
from include.controllers.autoscalers.rates import Counts, Paths, Rate, rates_since, ratio
from include.controllers.base import Gauge
from include.model.decision import Reason, Why
from include.model.observation import Observation


@dataclass(frozen=True, slots=True)
class Ds2Memory:
    """Counts of the last look, the last true rate of an instance by operator, and how many
    intervals and evaluations there were since the last change."""

    counts: Counts = field(default_factory=dict)
    true_per_s: Mapping[str, float] = field(default_factory=dict)
    intervals: int = 0
    evaluations: int = 0


@dataclass(frozen=True, kw_only=True)
class Ds2(Autoscaler):
    """As many instances as the sources' rates take, one evaluation for all operators.

    After a change it lets ``warm_up`` intervals pass, and then changes something at the
    ``activation``-th evaluation or later. ``factor`` adds so many instances more, as a share.
    ``controller/src/policy/scaling.rs`` has the policy, ``controller/src/bin/manager.rs`` when it
    is applied, ``config/ds2.toml`` the settings.
    """

    interval_s: float = 15.0
    warm_up: int = 2
    activation: int = 1
    factor: float = 0.0

    watches = "rate that reaches it, items/s"
    may_be_zero = frozenset({"warm_up", "factor"})

    def initial_memory(self) -> Ds2Memory:
        return Ds2Memory()

    def waits(self, memory: Ds2Memory, seen: Observation) -> Why | None:
        if not rates_since(memory.counts, seen)[1]:
            return Why(Reason.NO_MEASUREMENT, "a rate takes two readings")
        if memory.intervals < self.warm_up:
            return Why(Reason.SETTLING, f"{self.warm_up} intervals have to pass after a change")
        return None

    def targets(
        self, memory: Ds2Memory, seen: Observation
    ) -> tuple[Ds2Memory, dict[str, Recommendation]]:
        """Learn true rates, then evaluate the policy unless it warms up."""
        counts, rates = rates_since(memory.counts, seen)
        true = dict(memory.true_per_s)
        true |= {name: one.true_per_s for name, one in rates.items() if one.true_per_s is not None}
        memory = Ds2Memory(counts, true, memory.intervals, memory.evaluations)
        if not rates:
            return memory, {}
        if memory.intervals < self.warm_up:
            return Ds2Memory(counts, true, memory.intervals + 1, memory.evaluations), {}
        targets = self._evaluated(true, rates, seen)
        changes = any(
            is_significant(len(seen.serving(name)), target.instances)
            for name, target in targets.items()
        )
        evaluations = memory.evaluations + 1
        if evaluations < self.activation or not changes:
            return Ds2Memory(counts, true, memory.intervals + 1, evaluations), {}
        return Ds2Memory(counts, true), targets

    def watched(self, memory: Ds2Memory, seen: Observation, operator: str) -> Gauge | None:
        """The rate against what two instances less could do, and what those that there are can."""
        _, rates = rates_since(memory.counts, seen)
        wanted = self._optimal(memory.true_per_s, rates)
        if operator not in wanted or operator not in memory.true_per_s:
            return None
        each, current = memory.true_per_s[operator], len(seen.serving(operator))
        return Gauge(wanted[operator][1], each * max(0, current - 2), each * current)

    def _optimal(
        self, true: Mapping[str, float], rates: Mapping[str, Rate]
    ) -> dict[str, tuple[int, float]]:
        arrived = {name: one.arrived_per_s for name, one in rates.items()}
        sources = self._paths.source_rates(arrived)
        return optimal_instances(self._paths, sources, true, self.factor)

    def _evaluated(
        self, true: Mapping[str, float], rates: Mapping[str, Rate], seen: Observation
    ) -> dict[str, Recommendation]:
        targets = {}
        for name, (instances, per_s) in self._optimal(true, rates).items():
            current = len(seen.serving(name))
            detail = f"{per_s:.2f} items/s reach {name}, an instance can do {true[name]:.2f}"
            targets[name] = target_of(current, max(1, instances), detail)
        return targets


def is_significant(before: int, after: int) -> bool:
    """``consider_change``: an operator gets more instances, or loses more than one."""
    return after > before or after < before - 1


def optimal_instances(
    paths: Paths, source_per_s: Mapping[str, float], true_per_s: Mapping[str, float], factor: float
) -> dict[str, tuple[int, float]]:
    """Instances and the rate that is to be processed, of every operator whose input is known.

    ``true_per_s`` are those of one instance. What an operator passes on is what its instances
    would if there were as many as it takes, not rounded: so much as comes in, times what leaves
    for each.
    """
    out, optimum = dict(source_per_s), dict[str, tuple[int, float]]()
    for name in paths.order:
        edges = paths.inbound[name]
        if not all(edge.origin in out for edge in edges):
            continue
        per_s = sum(out[edge.origin] * ratio(edge) for edge in edges)
        if name in true_per_s:
            parallelism = per_s / true_per_s[name]
            optimum[name] = (math.ceil(parallelism * (1 + factor) - 1e-9), per_s)
            out[name] = parallelism * true_per_s[name]
        else:
            out[name] = per_s
    return optimum
