"""Who gets the places that are paid for: the operators that save the most late items by them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from include.controllers.base import Delays
from include.controllers.plan import Plan
from include.controllers.tide.estimates import Array, Load
from include.controllers.tide.loss import Gains, Loss
from include.model.decision import Reason, Why
from include.model.observation import InstanceSample


@dataclass(frozen=True, slots=True)
class Pauses:
    """What a start and a stop cost every operator, in late items per second: what arrives while
    it pauses is late, spread over the time for which the change is good."""

    start: Array
    stop: Array

    @classmethod
    def of(cls, load: Load, delays: Delays, lasts_s: float) -> Pauses:
        """Nothing where nobody says that an operator pauses."""
        starts_s, stops_s = (
            pause_s or 0.0 for pause_s in (delays.pause_on_start_s, delays.pause_on_stop_s)
        )
        return cls(*(load.rate_per_s * (pause_s / lasts_s) for pause_s in (starts_s, stops_s)))


class Places:
    """A local search on a plan: fill free room, then give places of one operator to another.

    Only operators in ``read`` are touched, and only ``hosts`` count: instances elsewhere are as
    good as gone.
    """

    def __init__(
        self,
        plan: Plan,
        loss: Loss,
        read: Collection[str],
        hosts: Collection[str],
        counts: ArrayLike | None = None,
        *,
        pauses: Pauses,
    ) -> None:
        """``counts`` are the instances of every operator; None counts those on the hosts."""
        self._plan, self._loss, self._hosts, self._pauses = plan, loss, hosts, pauses
        self._names = plan.operator_names
        if counts is None:
            here = plan.counts_on(hosts)
            # Where nothing arrives it is soon enough to move the last one when its host goes.
            last = np.minimum(plan.counts, 1) * (loss.load.rate_per_s <= 0)
            counts = np.maximum(here, last)
        self._instances: Array = np.array(counts, dtype=np.float64)
        self._unread = np.array([name not in read for name in self._names])

    def fill(self, at_least: float, *, only_up: bool = False) -> None:
        """Start instances where there is room while one saves more than ``at_least`` items/s."""
        gains = Gains(self._loss, self._instances, self._unread, self._pauses.start)
        for rows, turns, saved in gains.in_turn(at_least):
            names = [self._names[row] for row in rows.tolist()]
            told = _Told(names, (self._instances[rows] + turns).tolist(), saved.tolist())
            started = self._plan.start_each(names, told.of, only_up=only_up)
            left_out = np.ones(len(rows), dtype=np.bool_)
            left_out[started] = False
            self._instances += np.bincount(rows[~left_out], minlength=len(self._instances))
            gains.now[rows[left_out]] = -np.inf  # and stays so: nothing stops here

    def swap(self, at_least: float) -> None:
        """Stop an instance of one operator for one of another while that saves enough."""
        for _ in range(int(self._instances.sum())):
            gain = self._gain()
            row = int(gain.argmax())
            if not self._give_way_to(row, gain[row], at_least):
                return

    def _gain(self) -> Array:
        gain = self._loss.gain(self._instances) - self._pauses.start
        return np.where(self._unread, -np.inf, gain)

    def _give_way_to(self, row: int, gain: float, at_least: float) -> bool:
        """Whether an operator gave the place of an instance to the one at ``row``."""
        cost = self._loss.cost(self._instances) + self._pauses.stop
        cost = np.where(self._unread, np.inf, cost)
        for giver in np.argsort(cost, kind="stable"):
            if not gain - cost[giver] > at_least:
                return False
            one = None if giver == row else self._that_leaves_room(int(giver), row)
            if one is not None:
                why = self._why(row, gain)
                told = f"{why.sentence}; {one.instance} gives its place, costing {cost[giver]:.1f}"
                self._plan.stop(one, Why(Reason.MAKE_ROOM, told))
                self._plan.start(self._names[row], one.host, Why(why.reason, told))
                self._instances[row] += 1
                self._instances[giver] -= 1
                return True
        return False

    def _that_leaves_room(self, giver: int, row: int) -> InstanceSample | None:
        """The instance that was started last whose place the other operator fits in."""
        plan, wants = self._plan, self._plan.operator(self._names[row])
        gives = plan.operator(self._names[giver])
        for one in reversed(plan.serving(self._names[giver])):
            fits = one.host in self._hosts and plan.free[one.host].left.more(gives).fits(wants)
            if fits and plan.may_stop(one):
                return one
        return None

    def _why(self, row: int, gain: float) -> Why:
        sentence, reason = _told(self._names[row], self._instances[row], gain)
        return Why(reason, sentence)


@dataclass(frozen=True, slots=True)
class _Told:
    """Why operators with so many instances get one more each, by what it saves."""

    names: Sequence[str]
    counts: Sequence[float]
    saved: Sequence[float]

    def of(self, those: Sequence[int]) -> Iterator[tuple[str, Reason]]:
        """Only of those that get it: sentences take time."""
        return (_told(self.names[i], self.counts[i], self.saved[i]) for i in those)


def _told(name: str, count: float, gain: float) -> tuple[str, Reason]:
    """Why an operator with so many instances gets one more that saves ``gain`` late items/s."""
    if not count:
        return f"{name} has no instance", Reason.INSTANCE_LOST
    told = f"{name} has {count:.0f} instances; one more saves {gain:.1f} late items/s"
    return told, Reason.SLO_AT_RISK
