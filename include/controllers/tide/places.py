"""Shares out paid places: first to the operators whose instances save the most late items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import heappush, heapreplace

import numpy as np
from numpy.typing import ArrayLike

from include.controllers.plan import Plan
from include.controllers.tide.estimates import Array
from include.controllers.tide.loss import Gains, Loss
from include.model.decision import Reason, Why
from include.model.host import Capacity
from include.model.observation import InstanceSample
from include.model.topology import Operator

# Looked up once: in Python 3.11 that takes a third of the time of a whole sentence.
LOST, AT_RISK = Reason.INSTANCE_LOST, Reason.SLO_AT_RISK


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
        self._room_prices: dict[int, list[tuple[float, int, str]]] = {}
        """By row of an operator: a heap of what room for an instance of it costs on every host."""
        self._unread = np.array([name not in read for name in self._names])

    def fill(self, at_least: float, *, only_up: bool = False) -> None:
        """Start instances where there is room, each saving more than ``at_least`` items/s."""
        without = self._unread | ~self._plan.may_have_room(only_up=only_up)
        if without.all():
            return
        gains = Gains(self._loss, self._instances, without)
        for rows, turns, saved in gains.in_turn(at_least):
            names = [self._names[row] for row in rows.tolist()]
            counts, gain = (self._instances[rows].astype(int) + turns).tolist(), saved.tolist()
            reasons = _reasons(names, counts, gain)
            started = self._plan.start_each(names, reasons, only_up=only_up)
            left_out = np.ones(len(rows), dtype=np.bool_)
            left_out[started] = False
            self._instances += np.bincount(rows[~left_out], minlength=len(self._instances))
            gains.now[rows[left_out]] = -np.inf  # for good: nothing stops here

    def swap(self, at_least: float, pause_cost: Array) -> None:
        """Stop an instance of one operator, or several, for one of another while that saves enough.

        ``pause_cost``: late items per second, of an operator's first change.
        """
        for _ in range(int(self._instances.sum())):
            first = self._plan.scalings == 0
            gain = self._loss.gain(self._instances) - pause_cost * first
            gain = np.where(self._unread, -np.inf, gain)
            row = int(gain.argmax())
            cost = self._loss.cost(self._instances) + pause_cost * first
            cost = np.where(self._unread, np.inf, cost)
            leaving = self._replaceable(row, cost, gain[row] - at_least)
            if not leaving:
                return
            self._replace(leaving, row, gain[row])

    def _replaceable(self, row: int, cost: Array, most: float) -> dict[InstanceSample, float]:
        """Instances in whose places one of the operator ``row`` fits, and what each costs.

        One with a place that is large enough, the newest of the operator that misses it least;
        several of one host only where nobody can give such a place. None if they cost ``most`` or
        more together.
        """
        plan, wants = self._plan, self._plan.operator(self._names[row])
        if not cost.min() < most:
            return {}
        most_left = plan.free.most_left(only_up=False)
        for giver in np.argsort(cost, kind="stable").tolist():
            gives = plan.operator(self._names[giver])
            if giver == row or cost[giver] == np.inf or not most_left.more(gives).fits(wants):
                continue
            for instance in reversed(plan.serving(gives.name)):
                fits = instance.host in self._hosts and plan.free[instance.host].left.more(
                    gives
                ).fits(wants)
                if fits and plan.may_stop(instance):
                    return {instance: float(cost[giver])} if cost[giver] < most else {}
        return self._together(row, cost, most)

    def _together(self, row: int, cost: Array, most: float) -> dict[InstanceSample, float]:
        """Several instances of the host where they cost least, which is less than ``most``."""
        costs, heap = [cost], self._room_prices.setdefault(row, [])
        if not heap:
            heap += [(-np.inf, place, host) for host, place in self._plan.order_of_lease.items()]
        while heap and heap[0][0] < most:  # a price of before: the more stop, the higher it is
            _, place, host = heap[0]
            leaving = self._making_room(host, row, costs) if host in self._hosts else {}
            price = sum(leaving.values()) if leaving else np.inf
            heapreplace(heap, (price, place, host))
            if price < most and price <= heap[0][0]:
                return leaving
        return {}

    def _making_room(self, host: str, row: int, costs: list[Array]) -> dict[InstanceSample, float]:
        """Instances on the host that together make room for one of ``row``, found greedily.

        First those that are missed least for the share of the missing room that they give.
        ``costs`` of an operator's first stop, its second and so on; what is missing is added.
        """
        plan, wants = self._plan, self._plan.operator(self._names[row])
        left, leaving = plan.free[host].left, list[InstanceSample]()
        here = self._others(host, wants.name)
        fewer, gone = Counter[str](), list[str]()
        while not left.fits(wants):
            for name in [*here] if not leaving else [leaving[-1].operator]:
                while here[name] and not plan.may_stop(here[name][-1], gone):
                    here[name].pop()
                if not here[name]:
                    del here[name]
            price = {
                name: self._stop_cost(name, fewer[name], costs)
                / _share(plan.operator(name), wants, left)
                for name in here
            }
            name = min(price, key=price.__getitem__, default="")
            if price.get(name, np.inf) == np.inf:
                return {}
            leaving.append(here[name].pop())
            gone.append(leaving[-1].instance)
            fewer[name] += 1
            left = left.more(plan.operator(name))
        for each in leaving[::-1]:
            without = left.less(plan.operator(each.operator))
            if without.fits(wants):
                left = without
                leaving.remove(each)
        stops = Counter[str]()
        prices = dict[InstanceSample, float]()
        for each in leaving:
            prices[each] = self._stop_cost(each.operator, stops[each.operator], costs)
            stops[each.operator] += 1
        return prices

    def _others(self, host: str, name: str) -> dict[str, list[InstanceSample]]:
        """Instances on the host of all operators but this one that may stop, newest last."""
        here: dict[str, list[InstanceSample]] = {}
        for each in self._plan.on_host(host):
            if each.operator != name and self._plan.may_stop(each):
                here.setdefault(each.operator, []).append(each)
        return here

    def _stop_cost(self, name: str, before: int, costs: list[Array]) -> float:
        """What another stop of the operator costs after ``before`` of it."""
        while len(costs) <= before:
            further = self._loss.cost(self._instances - len(costs))
            costs.append(np.where(self._unread, np.inf, further))
        return float(costs[before][self._row[name]])

    def _replace(self, leaving: dict[InstanceSample, float], row: int, gain: float) -> None:
        """Stop these instances of one host and start one of the operator ``row`` there."""
        sentence, reason = _reason(self._names[row], int(self._instances[row]), gain)
        names = " and ".join(each.instance for each in leaving)
        verb = "gives its place" if len(leaving) == 1 else "give their places"
        why = f"{sentence}; {names} {verb}, costing {sum(leaving.values()):.1f}"
        for each in leaving:
            self._plan.stop(each, Why(Reason.MAKE_ROOM, why))
            self._instances[self._row[each.operator]] -= 1
        self._plan.start(self._names[row], each.host, Why(reason, why))
        for heap in self._room_prices.values():
            heappush(heap, (-np.inf, self._plan.order_of_lease[each.host], each.host))
        self._instances[row] += 1


def _share(op: Operator, wants: Operator, left: Capacity) -> float:
    """How much of the room that ``wants`` misses an instance of ``op`` gives, of CPU and memory."""
    missing = (
        (wants.cpu_cores - left.cpu_cores, op.cpu_cores),
        (wants.memory_mb - left.memory_mb, op.memory_mb),
    )
    return sum(min(1.0, has / lacks) for lacks, has in missing if lacks > 0)


def _reasons(
    names: Sequence[str], counts: Sequence[int], gains: Sequence[float]
) -> Callable[[Sequence[int]], Iterator[tuple[str, Reason]]]:
    """:func:`_reason` by position, called only for the started instances: it takes time."""
    return lambda rows: (_reason(names[i], counts[i], gains[i]) for i in rows)


def _reason(name: str, count: int, gain: float) -> tuple[str, Reason]:
    """Why an operator with ``count`` instances gets one more that saves ``gain`` late items/s."""
    if not count:
        return f"{name} has no instance", LOST
    return f"{name} has {count} instances; one more saves {gain:.1f} late items/s", AT_RISK
