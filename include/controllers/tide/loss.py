"""Late items per second with so many instances of an operator: what places are worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from include.controllers.tide.estimates import Array, Load

LOOKAHEAD = 4
"""How many instances may have to come together before one helps."""
Rows = slice | NDArray[np.intp]
EVERY = slice(None)
AT_ONCE = 32
"""Gains of an operator that are computed together."""
TURNS, MORE = 4, 8
"""Instances of each operator that are looked at together, and times as many when all were given."""
FIRST = 1e12
"""What an instance is worth where there is none: more than any lateness."""
HEAVIEST = 10.0
"""However old the items of an operator are, they count at most so often."""


class Gains:
    """What the next instance of each operator saves, while one after the other gets one more."""

    def __init__(
        self,
        loss: Loss,
        instances: Array,
        none: NDArray[np.bool_] | None = None,
        dear: Array | float = 0.0,
    ) -> None:
        """``instances`` are those of now, and change; operators in ``none`` save nothing.
        ``dear`` is what a start costs, and is taken off."""
        self._loss, self._instances = loss, instances
        self._dear = np.zeros_like(instances) + dear
        self._next: dict[int, Iterator[float]] = {}
        self.now = loss.gain(instances) - self._dear
        if none is not None:
            self.now[none] = -np.inf

    def best(self) -> int:
        """The operator that saves most."""
        return int(self.now.argmax())

    def add(self, row: int) -> None:
        """One more instance of an operator."""
        gain = next(self._next.get(row, iter(())), None)
        if gain is None:
            # Computed for many at once, in the beginning of all operators.
            rows = np.array([row]) if self._next else np.arange(len(self.now))
            ahead = self._after(rows, AT_ONCE).T.tolist()
            self._next.update(zip(rows.tolist(), map(iter, ahead), strict=True))
            gain = next(self._next[row])
        self._instances[row] += 1
        self.now[row] = gain

    def in_turn(self, above: float) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Array]]:
        """While one saves more than ``above``, who saves most, one instance after the other and
        thousands at a time: operators, how many they were given before, and what is saved.

        Whoever takes them counts the instances that there are in the end, and sets ``now`` of
        operators that get none to -inf.
        """
        count = TURNS
        while (rows := np.flatnonzero(self.now > above)).size:
            gains = np.vstack([self.now[rows], self._after(rows, count + 1)])
            # An instance that saves more than the one before has its turn directly after it.
            turns = np.minimum.accumulate(gains[:-1], axis=0)
            known = np.maximum(turns[-1].max(), np.nextafter(above, np.inf))
            turn, column = np.nonzero(turns >= known)
            order = np.lexsort((turn, column, -turns[turn, column]))
            turn, column = turn[order], column[order]
            # Whose last one that was looked at has its turn: what comes then is not known.
            last = np.flatnonzero(turn == count)[:1]
            end = int(last[0]) + 1 if last.size else len(turn)
            turn, column = turn[:end], column[:end]
            given = np.bincount(column, minlength=len(rows))
            self.now[rows] = gains[given, np.arange(len(rows))]
            yield rows[column], turn, gains[turn, column]
            count *= MORE

    def _after(self, rows: NDArray[np.intp], count: int) -> Array:
        """What operators save by the instances after their next one. Shape (count, rows)."""
        gains = self._loss.gains(self._instances[rows] + 1, count, rows)
        return gains - self._dear[rows]


@dataclass(frozen=True)
class Loss:
    """Of every operator; ``work_off_s`` is the time in which waiting items are to be worked off.

    Below saturation items are late after a disturbance, for ``disturbed`` of the time and until
    what came meanwhile is worked off, and where arrivals and work are ``uneven``; both the longer
    the fewer instances are spare. Above it all items are late, and ``overload`` counts that they
    pile up. Items that wait for ``age_s`` count twice, for twice as long three times.
    """

    load: Load
    work_off_s: float
    disturbed: float
    uneven: float
    overload: float
    age_s: float

    @cached_property
    def busy(self) -> Array:
        """Instances that what arrives and what waits keep busy."""
        load = self.load
        return (load.rate_per_s + load.waiting / self.work_off_s) * load.service_s

    @cached_property
    def weight(self) -> Array:
        """How much a late item counts, by the time it waits (Little's law)."""
        waits_s = self.load.waiting / np.maximum(self.load.rate_per_s, 1e-9)
        return np.minimum(HEAVIEST, 1 + waits_s / self.age_s)

    def hindered(self, instances: Array) -> Array:
        """Spare instances with which everything would still be late; with twice as many, half."""
        return self.disturbed * instances + self.uneven

    def late_per_s(self, instances: Array, rows: Rows = EVERY) -> Array:
        """Late items per second. Shape as ``instances``, the last axis being operators ``rows``."""
        rate, service_s, busy = (
            self.load.rate_per_s[..., rows],
            self.load.service_s[rows],
            self.busy[..., rows],
        )
        spare = instances - busy
        calm = rate * np.minimum(1.0, self.hindered(instances) / np.maximum(spare, 1e-9))
        piling = self.overload * (busy - instances) / service_s
        return self.weight[..., rows] * np.where(spare > 0, calm, rate + piling)

    def gain(self, instances: Array, rows: Rows = EVERY) -> Array:
        """Late items per second that another instance saves, or each of a few together.

        An operator without any comes first. Shape as ``instances``, the last axis being ``rows``.
        """
        more = np.arange(1.0, LOOKAHEAD + 1).reshape(-1, *[1] * instances.ndim)
        saved = self.late_per_s(instances, rows) - self.late_per_s(instances + more, rows)
        return np.where(instances < 1, FIRST, (saved / more).max(axis=0))

    def gains(self, instances: Array, count: int, rows: Rows = EVERY) -> Array:
        """:meth:`gain` of the operators ``rows`` with so many instances, one more, and so on.

        Shape (count, rows).
        """
        ahead: Array = np.arange(count + LOOKAHEAD, dtype=np.float64)[:, None] + instances
        late = self.late_ahead(ahead, rows)
        saved = [(late[:count] - late[k : k + count]) / k for k in range(1, LOOKAHEAD + 1)]
        gains: Array = np.where(ahead[:count] < 1, FIRST, np.max(saved, axis=0))
        return gains

    def late_ahead(self, instances: Array, rows: Rows) -> Array:
        """:meth:`late_per_s` of many counts of instances."""
        return self.late_per_s(instances, rows)

    def cost(self, instances: Array) -> Array:
        """Late items per second that one instance fewer costs; nobody gives its last one."""
        fewer = np.maximum(instances - 1, 1.0)
        return np.where(instances > 1, self.late_per_s(fewer) - self.late_per_s(instances), np.inf)


@dataclass(frozen=True)
class ExpectedLoss(Loss):
    """The mean over rates that are as likely as each other: those of ``load`` have a row for each.

    Shape of these (rates, operators); ``busy`` has it, too.
    """

    def late_per_s(self, instances: Array, rows: Rows = EVERY) -> Array:
        """Late items per second. Shape as ``instances``, the last axis being operators ``rows``."""
        each = super().late_per_s(instances[..., None, :], rows)
        mean: Array = each.mean(axis=-2)
        return mean

    def late_ahead(self, instances: Array, rows: Rows) -> Array:
        """The same of however many operators: the rates of each are added up in one order."""
        each = super().late_per_s(instances[..., None, :], rows)
        mean: Array = np.ascontiguousarray(np.swapaxes(each, -1, -2)).mean(axis=-1)
        return mean
