"""The contract of a filter: from what was measured to what a scaling rule should believe.

Borkowski et al., "Minimizing Cost by Reducing Scaling Operations in Distributed Stream
Processing", PVLDB 12(7), section 2.2. All operators are filtered in one call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class NothingKept:
    """The identity has no memory."""


@dataclass(frozen=True, slots=True)
class History:
    """By operator: time and metrics of every average in the window, one after the other."""

    of: dict[str, tuple[float, ...]] = field(default_factory=dict)
    metrics: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """What the dead time has taught about an operator: a and b of f, and Q row after row."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    q: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Regression:
    """Sums for least squares of dz = a D + b dD: of u u' (2, 2) and of u dz' (2, metrics)."""

    uu: tuple[float, ...]
    uz: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EkfMemory:
    """Operators by name, and the filters of their instances as columns, in one order.

    ``x`` and ``p`` hold, row after row, state and covariance of each instance. In its dead time
    they hold the sums of eq. 16 and 17 over its ``measurements``, which are 0 afterwards.
    """

    metrics: int = 0
    rate: dict[str, float] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    """Of operators that are through their dead time."""
    fits: dict[str, Regression] = field(default_factory=dict)
    """Of operators in their first dead time, unless a and b are given."""
    instances: tuple[str, ...] = ()
    operators_of: tuple[str, ...] = ()
    begun_s: tuple[float, ...] = ()
    measurements: tuple[int, ...] = ()
    z: tuple[float, ...] = ()
    x: tuple[float, ...] = ()
    p: tuple[float, ...] = ()


FilterMemory = NothingKept | History | EkfMemory


F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One measurement of every operator that the monitor read, instance by instance.

    ``z`` (instances, metrics) is the measured state and ``rate`` (operators,) the items per
    second that arrive for the operator: D of the paper. ``starting`` (operators,) counts instances
    that are not ready: they belong to B and do nothing yet. ``unread`` are ready ones of these
    operators without a reading.
    """

    t_s: float
    operators: tuple[str, ...]
    starting: NDArray[np.int64]
    rate: F64
    instances: tuple[str, ...]
    operator_of: NDArray[np.int64]
    """(instances,): index into ``operators``, ascending."""
    z: F64
    unread: frozenset[str] = frozenset()

    @property
    def metrics(self) -> int:
        return int(self.z.shape[1])

    def count(self) -> NDArray[np.int64]:
        """|B| of every operator, instances that start included. Shape (operators,)."""
        return np.bincount(self.operator_of, minlength=len(self.operators)) + self.starting

    def rows_of(self) -> list[slice]:
        """Where the instances of each operator stand."""
        bounds = np.searchsorted(self.operator_of, np.arange(len(self.operators) + 1)).tolist()
        return [slice(first, end) for first, end in pairwise(bounds)]

    def total(self, values: F64) -> F64:
        """Sum over the instances of each operator (eq. 15). Shape (operators, metrics)."""
        columns = [
            np.bincount(self.operator_of, column, minlength=len(self.operators))
            for column in values.T
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Z' of every operator: ``total`` (operators, metrics) over its instances, eq. 15.

    A filter that still bootstraps an operator is not ``usable`` (operators,) for it.
    """

    total: F64
    usable: NDArray[np.bool_]


class Filter(Protocol):
    """Lambda of section 2.2: it sees past measurements only, through its memory."""

    @property
    def counts(self) -> bool:
        """Whether its totals tell how many instances are needed, not just more or fewer."""
        ...

    def initial(self) -> Any:
        """What it remembers before the first measurement: a frozen dataclass of plain values."""
        ...

    def step(self, memory: Any, measured: Measured) -> tuple[Any, Estimate]:
        """Take one measurement in. The same input always gives the same output."""
        ...


@dataclass(frozen=True, slots=True)
class Pure:
    """PURE: no filter at all, the baseline of section 3.3."""

    counts: bool = False

    def initial(self) -> NothingKept:
        return NothingKept()

    def step(self, memory: NothingKept, measured: Measured) -> tuple[NothingKept, Estimate]:
        usable = np.ones(len(measured.operators), dtype=bool)
        return memory, Estimate(measured.total(measured.z), usable)
