"""Who gets the places that are paid for: the operators that save the most late items by them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from include.controllers.plan import Plan
from include.controllers.tide.estimates import Array
from include.controllers.tide.loss import Loss
from include.model.decision import Reason, Why
from include.model.observation import InstanceSample


class Places:
    """A local search on a plan: fill free room, then give places of one operator to another."""

    def __init__(
        self, plan: Plan, loss: Loss, names: tuple[str, ...], hosts: Collection[str]
    ) -> None:
        """``hosts`` are those that count: instances elsewhere are as good as gone."""
        self._plan, self._loss, self._names, self._hosts = plan, loss, names, hosts
        counts = [sum(one.host in hosts for one in plan.serving(name)) for name in names]
        self.instances: Array = np.array(counts, dtype=np.float64)

    def fill(self, at_least: float, *, only_up: bool) -> None:
        """Start instances where there is room while one saves more than ``at_least`` items/s."""
        full: set[int] = set()
        while True:
            gain = self._loss.gain(self.instances)
            gain[self.instances == 0] = np.inf
            gain[list(full)] = -np.inf
            row = int(gain.argmax())
            if not gain[row] > at_least:
                return
            name = self._names[row]
            choice = self._plan.free.best(self._plan.operator(name), only_up=only_up)
            if choice is None or choice.host not in self._hosts:
                full.add(row)
                continue
            self._plan.start(name, choice.host, self._why(row, gain[row]))
            self.instances[row] += 1

    def swap(self, at_least: float) -> None:
        """Stop an instance of one operator for one of another while that saves enough."""
        for _ in range(int(self.instances.sum())):
            gain, cost = self._loss.gain(self.instances), self._loss.cost(self.instances)
            gain[self.instances == 0] = np.inf
            cost[self.instances <= 1] = np.inf
            row = int(gain.argmax())
            for giver in np.argsort(cost, kind="stable"):
                if giver == row:
                    continue
                if not gain[row] - cost[giver] > at_least:
                    return
                one = self._that_leaves_room(int(giver), row)
                if one is not None:
                    told = f"; {one.instance} gives its place, costing {cost[giver]:.1f}"
                    why = self._why(row, gain[row]) + told
                    self._plan.stop(one, Why(Reason.MAKE_ROOM, why.sentence))
                    self._plan.start(self._names[row], one.host, why)
                    self.instances[row] += 1
                    self.instances[giver] -= 1
                    break
            else:
                return

    def _that_leaves_room(self, giver: int, row: int) -> InstanceSample | None:
        """The instance that was started last whose place another operator fits in."""
        plan, wants = self._plan, self._plan.operator(self._names[row])
        gives = plan.operator(self._names[giver])
        for one in reversed(plan.serving(self._names[giver])):
            if one.host in self._hosts and plan.free[one.host].left.more(gives).fits(wants):
                if plan.may_stop(one):
                    return one
        return None

    def _why(self, row: int, gain: float) -> Why:
        name, count = self._names[row], int(self.instances[row])
        told = f"{name} has {count} instances; one more saves {gain:.1f} late items/s"
        return Why(Reason.SLO_AT_RISK, told)
