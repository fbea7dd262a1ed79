"""Late items per second as a function of instances: the value of places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from include.controllers.tide.estimates import Array, Load

LOOKAHEAD = 4
"""At most this many more instances are needed before one helps."""
Rows = slice | NDArray[np.intp]
EVERY = slice(None)
TURNS, MORE = 4, 4
"""Further instances evaluated per operator, and the factor by which the next batch is larger."""
FIRST = 1e12
"""Gain of an operator's first instance: above any lateness."""
WORK_OFF_S = 40.0
"""Time to work off waiting items, for sharing out places."""
DISTURBED = 0.01
"""Share of the time in which an operator stands still."""
UNEVEN = 0.06
"""Spare instances that uneven arrivals and work need."""
OVERLOAD = 4.0
"""Weight of an item that piles up beside one that is late."""
AGE_S = 60.0
"""Wait that makes an item count twice, for sharing out places and for hosts that work it off."""
HEAVIEST = 10.0
"""Upper bound of the weight of old items."""


def age_weight(waiting: Array, rate_per_s: Array, age_s: float) -> Array:
    """How much items count for their waiting time (Little's law): twice if they wait ``age_s``."""
    waits_s = waiting / np.maximum(rate_per_s, 1e-9)
    return np.minimum(HEAVIEST, 1 + waits_s / age_s)


class Gains:
    """Gain of the next instance of each operator while instances are added one by one."""

    def __init__(self, loss: Loss, instances: Array, excluded: NDArray[np.bool_]) -> None:
        """``excluded`` operators gain nothing."""
        self._loss, self._instances = loss, instances
        self.now = loss.gain(instances)
        self.now[excluded] = -np.inf

    def in_turn(self, above: float) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Array]]:
        """Batches of further instances by falling gain, as long as gains are above ``above``.

        Yields arrays of equal length: rows of operators, how many instances each was given before
        in this batch, and the gain. The caller updates ``instances`` and sets ``now`` of operators
        that get none to -inf.
        """
        count = TURNS
        while (rows := np.flatnonzero(self.now > above)).size:
            after = self._loss.gains(self._instances[rows] + 1, count + 1, rows)
            gains = np.vstack([self.now[rows], after])
            # An instance with a higher gain than the one before it comes directly after that one.
            turns = np.minimum.accumulate(gains[:-1], axis=0)
            lowest = np.maximum(turns[-1].max(), np.nextafter(above, np.inf))
            column, turn = np.nonzero((turns >= lowest).T)
            order = np.argsort(-turns[turn, column], kind="stable")
            turn, column = turn[order], column[order]
            # The batch ends with the first operator whose last evaluated instance is given.
            last = np.flatnonzero(turn == count)[:1]
            end = int(last[0]) + 1 if last.size else len(turn)
            turn, column = turn[:end], column[:end]
            granted = np.bincount(column, minlength=len(rows))
            self.now[rows] = gains[granted, np.arange(len(rows))]
            yield rows[column], turn, gains[turn, column]
            count *= MORE


@dataclass(frozen=True)
class Loss:
    """Expected late items per second by operator.

    Waiting items are to be worked off within ``work_off_s``. Below saturation items are late
    because of disturbances (a share ``disturbed`` of the time, and until the backlog is worked
    off) and of ``uneven`` arrivals and service times; both fall with the number of spare
    instances. Above saturation all items are late, and ``overload`` weighs the growing queue.
    Items that wait ``age_s`` count twice, twice as long three times.
    """

    load: Load
    work_off_s: float
    disturbed: float
    uneven: float
    overload: float
    age_s: float

    @cached_property
    def busy(self) -> Array:
        """Instances kept busy by arrivals and by the backlog."""
        load = self.load
        return (load.rate_per_s + load.waiting / self.work_off_s) * load.service_s

    @cached_property
    def weight(self) -> Array:
        """Weight of a late item, from its waiting time (Little's law)."""
        return self.load.counts * age_weight(self.load.waiting, self.load.rate_per_s, self.age_s)

    def hindered(self, instances: Array, rows: Rows = EVERY) -> Array:
        """Number of spare instances at which all items are still late; with twice as many, half."""
        return self.load.reserve[rows] * (self.disturbed * instances + self.uneven)

    def share_late(self, instances: Array, rows: Rows = EVERY) -> Array:
        """Share of late items below saturation. Shape as ``instances``."""
        spare = instances - self.busy[rows]
        return np.minimum(1.0, self.hindered(instances, rows) / np.maximum(spare, 1e-9))

    def late_per_s(self, instances: Array, rows: Rows = EVERY) -> Array:
        """Late items per second. Shape as ``instances``, the last axis being operators ``rows``."""
        rate, service_s, busy = (
            self.load.rate_per_s[rows],
            self.load.service_s[rows],
            self.busy[rows],
        )
        calm = rate * self.share_late(instances, rows)
        piling = self.overload * (busy - instances) / service_s
        return self.weight[rows] * np.where(instances > busy, calm, rate + piling)

    def gain(self, instances: Array) -> Array:
        """Late items per second saved by one more instance, or by each of up to LOOKAHEAD.

        FIRST for an operator without instances. Shape as ``instances``.
        """
        more = np.arange(1.0, LOOKAHEAD + 1).reshape(-1, *[1] * instances.ndim)
        saved = self.late_per_s(instances) - self.late_per_s(instances + more)
        return np.where(instances < 1, FIRST, (saved / more).max(axis=0))

    def gains(self, instances: Array, count: int, rows: Rows = EVERY) -> Array:
        """:meth:`gain` of the operators ``rows`` with so many instances, one more, and so on.

        Shape (count, rows).
        """
        ahead: Array = np.arange(count + LOOKAHEAD, dtype=np.float64)[:, None] + instances
        late = self.late_per_s(ahead, rows)
        saved = [(late[:count] - late[k : k + count]) / k for k in range(1, LOOKAHEAD + 1)]
        # Two by two: np.max would copy all of them into one array first.
        gains: Array = np.where(ahead[:count] < 1, FIRST, reduce(np.maximum, saved))
        return gains

    def late_in(self, lasts_s: Array | float, instances: Array, waiting: Array) -> Array:
        """Late items by operator in so many seconds with ``waiting`` ones at first, the load's own
        aside.

        Of a fluid: what arrives until all that waits is worked off, what is late after that, and
        what is left in the end.
        """
        load = self.load
        spare_per_s = instances / load.service_s - load.rate_per_s
        busy_s = np.where(spare_per_s > 0, waiting / np.maximum(spare_per_s, 1e-9), lasts_s)
        busy_s = np.minimum(busy_s, lasts_s)
        left = np.maximum(0.0, waiting - spare_per_s * lasts_s)
        calm = replace(self, load=replace(load, waiting=np.zeros_like(waiting)))
        later = calm.late_per_s(instances) * (lasts_s - busy_s)
        late: Array = load.counts * load.rate_per_s * busy_s + later + load.counts * left
        return late

    def cost(self, instances: Array) -> Array:
        """Late items per second that one instance fewer costs; infinite for the last one."""
        fewer = np.maximum(instances - 1, 1.0)
        return np.where(instances > 1, self.late_per_s(fewer) - self.late_per_s(instances), np.inf)
