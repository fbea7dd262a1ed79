"""Local and global thresholds: Heinze et al., sections IV-A and IV-B."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from include.controllers.fugu.base import Fugu, Grace, idle
from include.controllers.fugu.cluster import Cluster, Placed
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
        waits = self.waiting(memory.waiting, placed, plan)
        return LocalMemory(memory.measurement, streaks, graces, waits), waiting


@dataclass(frozen=True, slots=True)
class GlobalMemory:
    """The last measurement, violations in a row (below 0: of the lower threshold), the grace.

    With ``waiting`` operators move as soon as a new host is up.
    """

    measurement: int = -1
    streak: int = 0
    grace_until_s: float = 0.0
    waiting: bool = False


@dataclass(frozen=True, kw_only=True)
class FuguGlobal(Fugu):
    """All hosts at once: the average load decides, after ``successive`` measurements in a row."""

    def initial_memory(self) -> GlobalMemory:
        return GlobalMemory()

    def judge(self, memory: GlobalMemory, observation: Observation, plan: Plan) -> tuple[Any, Why]:
        """Above: bring every host down to the target. Below: empty the least loaded one."""
        cluster = self.cluster(observation, plan, {})
        if observation.now_s < memory.grace_until_s or not cluster.loads:
            return replace(memory, streak=0), idle(cluster, Reason.SETTLING)
        waits = idle(cluster)
        average = sum(cluster.loads.values()) / len(cluster.loads)
        streak = self.streak(memory.streak, average)
        released = waiting = False
        if streak >= self.successive or memory.waiting:
            waiting = self._scale_out(cluster, average, streak)
        elif streak <= -self.successive:
            least = min(cluster.loads, key=lambda host: cluster.loads[host])
            sentence = (
                f"hosts use {average:.2f} on average, {-streak} times below {self.lower:.2f}; "
                f"{least} uses least, {cluster.loads[least]:.2f}"
            )
            released = cluster.scale_in(least, Why(Reason.UTILISATION_LOW, sentence))
        grace_until_s = memory.grace_until_s
        if released or cluster.touched:
            streak, grace_until_s = 0, observation.now_s + self.grace_s
        return GlobalMemory(memory.measurement, streak, grace_until_s, waiting), waits

    def _scale_out(self, cluster: Cluster, average: float, streak: int) -> bool:
        """Returns whether operators still wait for a new host."""
        sentence = f"hosts use {average:.2f} on average, {streak} times above {self.upper:.2f}"
        why = Why(Reason.UTILISATION_HIGH, sentence)
        if streak < self.successive:
            why = Why(Reason.NEW_HOST, "operators were to move to a new host")
        over = {
            host: why + f"; {host} uses {load:.2f}"
            for host, load in cluster.loads.items()
            if load > self.target
        }
        return Placed.WAITS in cluster.scale_out(over, self.target).values()
