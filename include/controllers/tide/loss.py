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
EVERY = slice(None)
AT_ONCE = 32
"""Gains of an operator that are computed together."""
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
        self._instances[row] += 1
        gain = next(self._next.get(row, iter(())), None)
        if gain is None:
            # Computed for several at once, which takes no longer than for one.
            self._next[row] = iter(self._loss.gains(row, float(self._instances[row]), AT_ONCE))
            gain = next(self._next[row])
        self.now[row] = gain - self._dear[row]


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

    def late_per_s(self, instances: Array, rows: slice = EVERY) -> Array:
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

    def gain(self, instances: Array, rows: slice = EVERY) -> Array:
        """Late items per second that another instance saves, or each of a few together.

        An operator without any comes first. Shape as ``instances``, the last axis being ``rows``.
        """
        more = np.arange(1.0, LOOKAHEAD + 1).reshape(-1, *[1] * instances.ndim)
        saved = self.late_per_s(instances, rows) - self.late_per_s(instances + more, rows)
        return np.where(instances < 1, FIRST, (saved / more).max(axis=0))

    def gains(self, row: int, instances: float, count: int) -> list[float]:
        """:meth:`gain` of the operator at ``row``, with so many instances, one more, and so on."""
        ahead: Array = np.arange(count + LOOKAHEAD, dtype=np.float64) + instances
        late = self.late_per_s(ahead[:, None], slice(row, row + 1))[:, 0]
        saved = [(late[:count] - late[k : k + count]) / k for k in range(1, LOOKAHEAD + 1)]
        gains: list[float] = np.where(ahead[:count] < 1, FIRST, np.max(saved, axis=0)).tolist()
        return gains

    def cost(self, instances: Array) -> Array:
        """Late items per second that one instance fewer costs; nobody gives its last one."""
        fewer = np.maximum(instances - 1, 1.0)
        return np.where(instances > 1, self.late_per_s(fewer) - self.late_per_s(instances), np.inf)


@dataclass(frozen=True)
class ExpectedLoss(Loss):
    """The mean over rates that are as likely as each other: those of ``load`` have a row for each.

    Shape of these (rates, operators); ``busy`` has it, too.
    """

    def late_per_s(self, instances: Array, rows: slice = EVERY) -> Array:
        """Late items per second. Shape as ``instances``, the last axis being operators ``rows``."""
        each = super().late_per_s(instances[..., None, :], rows)
        mean: Array = each.mean(axis=-2)
        return mean
