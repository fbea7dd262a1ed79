"""The frame of the three FUGU controllers: options, what counts as a measurement, one decision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from include.controllers.base import Setting
from include.controllers.first_fit import start_first_fit
from include.controllers.fugu.cluster import Cluster
from include.controllers.plan import Plan
from include.model.decision import Decision, Reason, Why
from include.model.observation import Observation

FILL_TO = ("target", "upper", "full")


@dataclass(frozen=True, slots=True)
class Grace:
    """A host that a decision touched: until when it is left alone, and its load by then."""

    until_s: float
    load: float


@dataclass(frozen=True, kw_only=True)
class Fugu:
    """Options of all three; only the thresholds and the target are meant to be set by a user.

    Utilisations are shares of a host's CPU. ``fill_to`` says how far placement fills a host: to
    the target, the upper threshold or the whole of it. A host, or all of them, must ask to scale
    in ``successive`` measurements in a row; for ``grace_s`` after a decision they are left alone.
    """

    setting: Setting
    interval_s: float = 5.0
    lower: float = 0.3
    upper: float = 0.8
    target: float = 0.6
    successive: int = 2
    grace_s: float = 30.0
    fill_to: str = "target"

    def problems(self) -> Iterator[str]:
        """Options that make no sense, each with what to do."""
        if self.interval_s <= 0:
            yield f"interval_s must be above 0, got {self.interval_s:g}"
        if not 0 <= self.lower < self.target < self.upper <= 1:
            yield (
                "fugu needs 0 <= lower < target < upper <= 1, "
                f"got {self.lower:g}, {self.target:g}, {self.upper:g}"
            )
        if self.grace_s < 0:
            yield f"grace_s must not be negative, got {self.grace_s:g}"
        if self.successive < 1:
            yield f"successive must be at least 1, got {self.successive}"
        if self.fill_to not in FILL_TO:
            yield f"fill_to must be one of {', '.join(FILL_TO)}, got {self.fill_to!r}"

    @property
    def limit(self) -> float:
        """The load that placement fills a host to."""
        return {"target": self.target, "upper": self.upper, "full": 1.0}[self.fill_to]

    def initial_instances(self) -> Mapping[str, int]:
        """What the topology starts with: operators are moved, never copied."""
        return {
            op.name: op.instances_at_start
            for op in self.setting.topology.operators
            if not op.runs_in
        }

    def decide(self, memory: Any, seen: Observation) -> tuple[Any, Decision]:
        """Replace lost operators, judge new measurements, and keep the leases that end."""
        plan = Plan(self.setting, seen)
        for op in self.setting.topology.operators:
            if not op.runs_in and op.name in seen.operators and plan.count(op.name) == 0:
                lost = Why(Reason.INSTANCE_LOST, f"{op.name} has no instance left")
                start_first_fit(plan, op.name, lost)
        measurement = math.floor(seen.now_s / self.setting.monitor_every_s)
        told = f"nothing to do: measurement {measurement} was judged before"
        waiting = Why(Reason.NO_MEASUREMENT, told)
        if measurement != memory.measurement:
            memory = replace(memory, measurement=measurement)
            memory, waiting = self.judge(memory, seen, plan)
        plan.keep_leases(0)
        return memory, plan.decision(waiting)

    def judge(self, memory: Any, seen: Observation, plan: Plan) -> tuple[Any, Why]:
        """Put steps into the plan; returns the memory and what to say when there are none."""
        raise NotImplementedError

    def cluster(self, seen: Observation, plan: Plan, graces: Mapping[str, Grace]) -> Cluster:
        """The loads of this measurement."""
        expected = {host: grace.load for host, grace in graces.items()}
        return Cluster(self.setting, seen, plan, expected=expected, limit=self.limit)

    def in_grace(self, seen: Observation, graces: Mapping[str, Grace]) -> dict[str, Grace]:
        """Graces that go on, with those of hosts that were ordered a moment ago."""
        ordered = {
            host.host: Grace(host.ordered_s + self.grace_s, 0.0)
            for host in seen.hosts.values()
            if seen.now_s < host.ordered_s + self.grace_s
        }
        return ordered | {h: grace for h, grace in graces.items() if seen.now_s < grace.until_s}

    def with_touched(self, graces: Mapping[str, Grace], cluster: Cluster) -> dict[str, Grace]:
        """Graces that go on, with those of hosts that this decision has touched."""
        until_s = cluster.plan.now_s + self.grace_s
        return dict(graces) | {h: Grace(until_s, load) for h, load in cluster.touched.items()}

    def streak(self, before: int, load: float) -> int:
        """Violations in a row with this one: above 0 of the upper threshold, below of the lower."""
        if load > self.upper:
            return max(before, 0) + 1
        if load < self.lower:
            return min(before, 0) - 1
        return 0


def idle(cluster: Cluster, reason: Reason = Reason.NOTHING_TO_DO) -> Why:
    """How full the hosts are, for decisions to wait."""
    if not cluster.loads:
        return Why(Reason.NO_MEASUREMENT, "nothing to do: no host was measured")
    average = sum(cluster.loads.values()) / len(cluster.loads)
    told = (
        f"nothing to do: {len(cluster.loads)} hosts use {average:.2f} of their CPU, "
        f"from {min(cluster.loads.values()):.2f} to {max(cluster.loads.values()):.2f}"
    )
    return Why(reason, told)
