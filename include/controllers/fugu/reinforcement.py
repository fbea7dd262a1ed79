"""Reinforcement learning per host: Heinze et al., section IV-C."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from include.controllers.fugu.base import Fugu, Grace, idle
from include.controllers.fugu.cluster import Cluster, Placed
from include.controllers.fugu.sarsa import (
    IN,
    NAMES,
    NONE,
    OUT,
    Learning,
    Table,
    Transition,
    best_action,
    decided,
    initial_table,
    learn,
)
from include.controllers.plan import Plan
from include.model.decision import Reason, Why
from include.model.errors import not_above_0
from include.model.observation import Observation


@dataclass(frozen=True, slots=True)
class SarsaMemory:
    """The last measurement, and a lookup table and a grace period per host.

    ``waiting`` are hosts whose operators move as soon as a new host is up. ``streaks`` counts
    how often in a row a host preferred to scale out (below 0: in) and has not been let yet.
    """

    measurement: int = -1
    tables: Mapping[str, Table] = field(default_factory=dict)
    graces: Mapping[str, Grace] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    streaks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FuguSarsa(Fugu):
    """Each host has a table of expected rewards and takes the action that promises most.

    The row of a host's utilisation is the nearest, or with ``rounds_down`` the next lower one.
    ``penalty`` is the negative reward of a decision that placement refused. A host has to prefer
    to scale ``successive`` times in a row; before that it neither acts nor learns.
    """

    imp: float = 0.2
    dur: float = 80.0
    beta: float = 0.1
    step: float = 0.05
    penalty: float = 1.0
    rounds_down: bool = False

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        for name in ("imp", "beta"):
            if not 0 <= getattr(self, name) <= 1:
                yield f"{name} must lie between 0 and 1, got {getattr(self, name):g}"
        yield from not_above_0(self, "dur")
        if not 1e-6 <= self.step <= 0.5 or abs(1 / self.step - round(1 / self.step)) > 1e-6:
            yield f"step must divide 1 into two or more equal parts, got {self.step:g}"
        if self.penalty < 0:
            yield f"penalty must not be negative: it is taken as below 0, got {self.penalty:g}"

    @property
    def learning(self) -> Learning:
        """The options of the same names."""
        return Learning(**{option.name: getattr(self, option.name) for option in fields(Learning)})

    def initial_memory(self) -> SarsaMemory:
        return SarsaMemory()

    def judge(self, memory: SarsaMemory, observation: Observation, plan: Plan) -> tuple[Any, Why]:
        """Learn from the last decisions of every host, then take the best actions."""
        learning = self.learning
        graces = self.in_grace(observation, memory.graces)
        cluster = self.cluster(observation, plan, graces)
        waits = idle(cluster)
        tables = {h: table for h, table in memory.tables.items() if h in plan.free}
        loads = {host: load for host, load in cluster.loads.items() if host not in graces}
        chosen: dict[str, int] = {}
        streaks: dict[str, int] = {}
        for host, load in loads.items():
            if host not in memory.waiting:  # else its decision has had no outcome yet
                tables[host] = self._decided(tables.get(host), load, learning)
                streaks[host] = _streak(memory.streaks.get(host, 0), tables[host])
                if 0 < abs(streaks[host]) < self.successive:
                    tables[host] = decided(tables[host], None)
            step = tables[host].last
            chosen[host] = step.action if step else NONE
        placed = self._scale_out(cluster, tables, [h for h, a in chosen.items() if a == OUT])
        under = [host for host, action in chosen.items() if action == IN]
        self._scale_in(cluster, tables, sorted(under, key=lambda host: loads[host]))
        graces = self.with_touched(graces, cluster)
        early = {host: n for host, n in streaks.items() if 0 < abs(n) < self.successive}
        waiting = self.waiting(memory.waiting, placed, plan)
        return SarsaMemory(memory.measurement, tables, graces, waiting, early), waits

    def _decided(self, table: Table | None, load: float, learning: Learning) -> Table:
        """The table with what its last decision has taught it, and with the next decision."""
        learned = learn(table or initial_table(learning), load, learning)
        state = learning.state(load)
        action = best_action(learned.rewards[state])
        return decided(learned, Transition(state, action, learning.error(load)))

    def _scale_out(
        self, cluster: Cluster, tables: dict[str, Table], hosts: list[str]
    ) -> dict[str, Placed]:
        """Bring hosts down to the target; what placement refused has a penalty."""
        because = {host: _because(cluster, tables[host], host) for host in hosts}
        results = cluster.scale_out(because, self.target)
        for host, placed in results.items():
            if placed is Placed.REFUSED:
                tables[host] = _refused(tables[host])
            elif placed is Placed.ALL_LEASED:  # not a wrong decision, and without an outcome
                tables[host] = decided(tables[host], None)
        return results

    def _scale_in(self, cluster: Cluster, tables: dict[str, Table], hosts: list[str]) -> None:
        for host in hosts:
            if cluster.plan.is_given_work(host):
                tables[host] = decided(tables[host], None)
            elif cluster.scale_in(host, _because(cluster, tables[host], host)):
                del tables[host]
            else:
                tables[host] = _refused(tables[host])


def _streak(before: int, table: Table) -> int:
    """How often in a row the host has preferred this action, 0 for none."""
    action = table.last.action if table.last else NONE
    if action == OUT:
        return max(before, 0) + 1
    return min(before, 0) - 1 if action == IN else 0


def _refused(table: Table) -> Table:
    step = table.last
    if step is None:
        return table
    return decided(table, Transition(step.state, step.action, step.error, refused=True))


def _because(cluster: Cluster, table: Table, host: str) -> Why:
    step = table.last
    action, state = (step.action, step.state) if step else (NONE, 0)
    row = table.rewards[state]
    rest = ", ".join(f"{NAMES[a]} {row[a]:.2f}" for a in (IN, NONE, OUT) if a != action)
    sentence = (
        f"{host} uses {cluster.loads[host]:.2f}, where {NAMES[action]} promises "
        f"{row[action]:.2f} ({rest})"
    )
    return Why(Reason.EXPECTED_REWARD, sentence)
