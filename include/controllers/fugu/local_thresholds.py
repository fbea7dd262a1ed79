"""Local thresholds: Heinze et al., section IV-A."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from include.controllers.fugu.base import Fugu, Grace, idle
from include.controllers.fugu.cluster import Placed
from include.controllers.plan import Plan
from include.model.decision import Reason, Why
from include.model.observation import Observation


@dataclass(frozen=True, slots=True)
class LocalMemory:
    """The last measurement, violations in a row per host (below 0: of the lower threshold).

    ``waiting`` are hosts whose operators move as soon as a new host is up.
    """

    measurement: int = -1
    streaks: Mapping[str, int] = field(default_factory=dict)
    graces: Mapping[str, Grace] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FuguLocal(Fugu):
    """Each host for itself: overloaded or underloaded after ``successive`` measurements in a row.

    The measurements of a grace period do not count.
    """

    def initial_memory(self) -> LocalMemory:
        return LocalMemory()

    def judge(self, memory: LocalMemory, observation: Observation, plan: Plan) -> tuple[Any, Why]:
        """Bring overloaded hosts down to the target, then empty underloaded ones."""
        graces = self.in_grace(observation, memory.graces)
        cluster = self.cluster(observation, plan, graces)
        streaks = {
            host: self.streak(memory.streaks.get(host, 0), load)
            for host, load in cluster.loads.items()
            if host not in graces
        }
        waiting = idle(cluster)
        loads = dict(cluster.loads)
        over = {
            host: Why(
                Reason.UTILISATION_HIGH,
                f"{host} uses {loads[host]:.2f}, {n} times above {self.upper:.2f}",
            )
            for host, n in streaks.items()
            if n >= self.successive
        } | {
            host: Why(
                Reason.NEW_HOST,
                f"{host} uses {loads[host]:.2f} and was to give operators to a new host",
            )
            for host in memory.waiting
            if host in streaks
        }
        placed = cluster.scale_out(over, self.target)
        under = [host for host, n in streaks.items() if n <= -self.successive]
        for host in sorted(under, key=lambda host: loads[host]):
            if not plan.is_given_work(host):
                times = -streaks[host]
                sentence = f"{host} uses {loads[host]:.2f}, {times} times below {self.lower:.2f}"
                cluster.scale_in(host, Why(Reason.UTILISATION_LOW, sentence))
        graces = self.with_touched(graces, cluster)
        streaks = {host: n for host, n in streaks.items() if n and host not in graces}
        waits = tuple(host for host, result in placed.items() if result is Placed.WAITS)
        return LocalMemory(memory.measurement, streaks, graces, waits), waiting
