"""Shares out paid places: first to the operators whose instances save the most late items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from include.controllers.plan import Plan
from include.controllers.tide.estimates import Array
from include.controllers.tide.loss import Gains, Loss
from include.model.decision import Reason, Why
from include.model.host import Capacity
from include.model.observation import InstanceSample


class Places:
    """A local search on a plan: fill free room, then give places of one operator to another.

    Changes only operators in ``read`` and counts only instances on ``hosts``.
    """

    def __init__(
        self,
        plan: Plan,
        loss: Loss,
        read: Collection[str],
        hosts: Collection[str],
        counts: ArrayLike | None = None,
    ) -> None:
        """``counts`` are the instances of every operator; None counts those on the hosts."""
        self._plan, self._loss, self._hosts = plan, loss, hosts
        self._names = plan.operator_names
        self._row = {name: row for row, name in enumerate(self._names)}
        if counts is None:
            here = plan.counts_on(hosts)
            # Without arrivals the last instance need not move before its host goes.
            last = np.minimum(plan.counts, 1) * (loss.load.rate_per_s <= 0)
            counts = np.maximum(here, last)
        self._instances: Array = np.array(counts, dtype=np.float64)
        self._unread = np.array([name not in read for name in self._names])

    def fill(self, at_least: float, *, only_up: bool = False) -> None:
        """Start instances where there is room, each saving more than ``at_least`` items/s."""
        without = self._unread | ~self._plan.may_have_room(only_up=only_up)
        if without.all():
            return
        gains = Gains(self._loss, self._instances, without)
        for rows, turns, saved in gains.in_turn(at_least):
            names = [self._names[row] for row in rows.tolist()]
            counts, gain = (self._instances[rows] + turns).tolist(), saved.tolist()
            reasons = _reasons(names, counts, gain)
            started = self._plan.start_each(names, reasons, only_up=only_up)
            left_out = np.ones(len(rows), dtype=np.bool_)
            left_out[started] = False
            self._instances += np.bincount(rows[~left_out], minlength=len(self._instances))
            gains.now[rows[left_out]] = -np.inf  # for good: nothing stops here

    def swap(self, at_least: float, start_cost: Array, stop_cost: Array) -> None:
        """Stop an instance of one operator, or several, for one of another while that saves enough.

        ``start_cost`` and ``stop_cost``: late items per second, of an operator's first change.
        """
        for _ in range(int(self._instances.sum())):
            first = self._plan.scalings == 0
            gain = self._loss.gain(self._instances) - start_cost * first
            gain = np.where(self._unread, -np.inf, gain)
            row = int(gain.argmax())
            cost = self._loss.cost(self._instances) + stop_cost * first
            cost = np.where(self._unread, np.inf, cost)
            most = gain[row] - at_least
            leaving = self._replaceable(row, cost, most) or self._together(row, cost, most)
            if not leaving:
                return
            self._replace(leaving, row, gain[row])

    def _replaceable(self, row: int, cost: Array, most: float) -> dict[InstanceSample, float]:
        """The newest instance of the operator that misses it least, with what it costs.

        One of the operator ``row`` fits in its place, and it costs less than ``most``.
        """
        plan, wants = self._plan, self._plan.operator(self._names[row])
        for giver in np.argsort(cost, kind="stable").tolist():
            if not cost[giver] < most:
                break
            gives = plan.operator(self._names[giver])
            for instance in reversed(plan.serving(gives.name) if giver != row else ()):
                fits = instance.host in self._hosts and plan.free[instance.host].left.more(
                    gives
                ).fits(wants)
                if fits and plan.may_stop(instance):
                    return {instance: float(cost[giver])}
        return {}

    def _together(self, row: int, cost: Array, most: float) -> dict[InstanceSample, float]:
        """Instances of one host whose places together have room for one of the operator ``row``.

        Of the host where they cost least, less than ``most``; each with what it costs. None if
        one place would do, whoever has it.
        """
        plan, costs, best = self._plan, [cost], dict[InstanceSample, float]()
        wants = plan.operator(self._names[row])
        others = [plan.operator(name) for name in self._names if name != wants.name]
        if any(Capacity(op.cpu_cores, op.memory_mb).fits(wants) for op in others) or any(
            plan.free[instance.host].left.more(op).fits(wants)
            for op in others
            for instance in plan.serving(op.name)
            if instance.host in self._hosts
        ):
            return best
        for host in self._plan.order_of_lease:
            leaving = self._making_room(host, row, costs, most) if host in self._hosts else {}
            if leaving:
                best, most = leaving, sum(leaving.values())
        return best

    def _making_room(
        self, host: str, row: int, costs: list[Array], most: float
    ) -> dict[InstanceSample, float]:
        """The least missed instances on the host, one after the other until ``row`` has room.

        ``costs`` of an operator's first stop, its second and so on; what is missing is added.
        """
        plan, wants = self._plan, self._plan.operator(self._names[row])
        left, leaving = plan.free[host].left, dict[InstanceSample, float]()
        others = [each for each in reversed(plan.on_host(host)) if each.operator != wants.name]
        while not left.fits(wants):
            fewer = Counter(each.operator for each in leaving)
            if len(costs) <= max(fewer.values(), default=0):
                further = self._loss.cost(self._instances - len(costs))
                costs.append(np.where(self._unread, np.inf, further))
            gone = [each.instance for each in leaving]
            price = {
                each: float(costs[fewer[each.operator]][self._row[each.operator]])
                for each in others
                if each not in leaving and plan.may_stop(each, gone)
            }
            least = min(price, key=price.__getitem__, default=None)
            if least is None or not sum(leaving.values()) + price[least] < most:
                return {}
            leaving[least] = price[least]
            left = left.more(plan.operator(least.operator))
        for each in sorted(leaving, key=leaving.__getitem__, reverse=True):
            without = left.less(plan.operator(each.operator))
            if without.fits(wants):
                left = without
                del leaving[each]
        return leaving

    def _replace(self, leaving: dict[InstanceSample, float], row: int, gain: float) -> None:
        """Stop these instances of one host and start one of the operator ``row`` there."""
        sentence, reason = _reason(self._names[row], self._instances[row], gain)
        names = " and ".join(each.instance for each in leaving)
        verb = "gives its place" if len(leaving) == 1 else "give their places"
        why = f"{sentence}; {names} {verb}, costing {sum(leaving.values()):.1f}"
        for each in leaving:
            self._plan.stop(each, Why(Reason.MAKE_ROOM, why))
            self._instances[self._row[each.operator]] -= 1
        self._plan.start(self._names[row], each.host, Why(reason, why))
        self._instances[row] += 1


def _reasons(
    names: Sequence[str], counts: Sequence[float], gains: Sequence[float]
) -> Callable[[Sequence[int]], Iterator[tuple[str, Reason]]]:
    """:func:`_reason` by position, called only for the started instances: it takes time."""
    return lambda rows: (_reason(names[i], counts[i], gains[i]) for i in rows)


def _reason(name: str, count: float, gain: float) -> tuple[str, Reason]:
    """Why an operator with ``count`` instances gets one more that saves ``gain`` late items/s."""
    if not count:
        return f"{name} has no instance", Reason.INSTANCE_LOST
    sentence = f"{name} has {count:.0f} instances; one more saves {gain:.1f} late items/s"
    return sentence, Reason.SLO_AT_RISK
