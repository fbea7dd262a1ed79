"""Shares out paid places: first to the operators whose instances save the most late items."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from include.controllers.plan import Plan
from include.controllers.tide.estimates import Array
from include.controllers.tide.loss import Gains, Loss
from include.model.decision import Reason, Why
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
        """Stop an instance of one operator for one of another while that saves enough.

        ``start_cost`` and ``stop_cost``: late items per second, of an operator's first change.
        """
        for _ in range(int(self._instances.sum())):
            first = self._plan.scalings == 0
            gain = self._loss.gain(self._instances) - start_cost * first
            gain = np.where(self._unread, -np.inf, gain)
            row = int(gain.argmax())
            cost = self._loss.cost(self._instances) + stop_cost * first
            cost = np.where(self._unread, np.inf, cost)
            if not self._give_way_to(row, gain[row], cost, at_least):
                return

    def _give_way_to(self, row: int, gain: float, cost: Array, at_least: float) -> bool:
        """Whether another operator gave the place of an instance to operator ``row``."""
        for giver in np.argsort(cost, kind="stable"):
            if not gain - cost[giver] > at_least:
                return False
            victim = None if giver == row else self._replaceable(int(giver), row)
            if victim is not None:
                why = self._why(row, gain)
                sentence = (
                    f"{why.sentence}; {victim.instance} gives its place, costing {cost[giver]:.1f}"
                )
                self._plan.stop(victim, Why(Reason.MAKE_ROOM, sentence))
                self._plan.start(self._names[row], victim.host, Why(why.reason, sentence))
                self._instances[row] += 1
                self._instances[giver] -= 1
                return True
        return False

    def _replaceable(self, giver: int, row: int) -> InstanceSample | None:
        """The newest instance of ``giver`` whose place an instance of ``row`` fits in."""
        plan, wants = self._plan, self._plan.operator(self._names[row])
        gives = plan.operator(self._names[giver])
        for instance in reversed(plan.serving(self._names[giver])):
            fits = instance.host in self._hosts and plan.free[instance.host].left.more(gives).fits(
                wants
            )
            if fits and plan.may_stop(instance):
                return instance
        return None

    def _why(self, row: int, gain: float) -> Why:
        sentence, reason = _reason(self._names[row], self._instances[row], gain)
        return Why(reason, sentence)


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
