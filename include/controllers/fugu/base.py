"""The frame of the three FUGU controllers: options, what counts as a measurement, one decision."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from include.controllers.base import Setting
from include.controllers.first_fit import start_first_fit
from include.controllers.fugu.cluster import Cluster, Placed
from include.controllers.plan import Plan
from include.model.decision import Decision, Reason, Why
from include.model.errors import below_0
from include.model.observation import Observation

FILL_TO = ("target", "upper", "full")


@dataclass(frozen=True, slots=True)
class Grace:
    """Grace period of a host that a decision touched, and its expected load."""

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
        if not 0 <= self.lower < self.target < self.upper <= 1:
            yield (
                "fugu needs 0 <= lower < target < upper <= 1, "
                f"got {self.lower:g}, {self.target:g}, {self.upper:g}"
            )
        yield from below_0(self, "grace_s")
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

    def decide(self, memory: Any, observation: Observation) -> tuple[Any, Decision]:
        """Replace lost operators, judge new measurements, and keep the leases that end."""
        plan = Plan(self.setting, observation)
        for op in self.setting.topology.operators:
            if not op.runs_in and op.name in observation.operators and plan.count(op.name) == 0:
                lost = Why(Reason.INSTANCE_LOST, f"{op.name} has no instance left")
                start_first_fit(plan, op.name, lost)
        measurement = math.floor(observation.now_s / self.setting.monitor_every_s)
        sentence = f"nothing to do: measurement {measurement} was judged before"
        waiting = Why(Reason.NO_MEASUREMENT, sentence)
        if measurement != memory.measurement:
            memory = replace(memory, measurement=measurement)
            memory, waiting = self.judge(memory, observation, plan)
        plan.keep_leases(0)
        return memory, plan.decision(waiting)

    def judge(self, memory: Any, observation: Observation, plan: Plan) -> tuple[Any, Why]:
        """Add steps to the plan; returns the memory and the reason to wait if there are none."""
        raise NotImplementedError

    def cluster(self, observation: Observation, plan: Plan, graces: Mapping[str, Grace]) -> Cluster:
        expected = {host: grace.load for host, grace in graces.items()}
        return Cluster(self.setting, observation, plan, expected=expected, limit=self.limit)

    def in_grace(self, observation: Observation, graces: Mapping[str, Grace]) -> dict[str, Grace]:
        """Current grace periods, including those of newly ordered hosts."""
        ordered = {
            host.host: Grace(host.ordered_s + self.grace_s, 0.0)
            for host in observation.hosts.values()
            if observation.now_s < host.ordered_s + self.grace_s
        }
        return ordered | {
            h: grace for h, grace in graces.items() if observation.now_s < grace.until_s
        }

    def with_touched(self, graces: Mapping[str, Grace], cluster: Cluster) -> dict[str, Grace]:
        """Current grace periods, including those of hosts that this decision touched."""
        until_s = cluster.plan.now_s + self.grace_s
        return dict(graces) | {h: Grace(until_s, load) for h, load in cluster.touched.items()}

    def waiting(
        self, before: Iterable[str], placed: Mapping[str, Placed], plan: Plan
    ) -> tuple[str, ...]:
        """Hosts whose operators wait for a new one: also those in grace or not measured now."""
        kept = [host for host in before if host in plan.free and host not in placed]
        return (*kept, *(host for host, result in placed.items() if result is Placed.WAITS))

    def streak(self, before: int, load: float) -> int:
        """Successive violations: positive of the upper threshold, negative of the lower one."""
        if load > self.upper:
            return max(before, 0) + 1
        if load < self.lower:
            return min(before, 0) - 1
        return 0


def idle(cluster: Cluster, reason: Reason = Reason.NOTHING_TO_DO) -> Why:
    """Reason to wait: the CPU utilisation of the hosts."""
    if not cluster.loads:
        return Why(Reason.NO_MEASUREMENT, "nothing to do: no host was measured")
    average = sum(cluster.loads.values()) / len(cluster.loads)
    sentence = (
        f"nothing to do: {len(cluster.loads)} hosts use {average:.2f} of their CPU, "
        f"from {min(cluster.loads.values()):.2f} to {max(cluster.loads.values()):.2f}"
    )
    return Why(reason, sentence)
