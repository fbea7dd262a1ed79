"""The contract of a filter: from what was measured to what a scaling rule should believe.

Borkowski et al., "Minimizing Cost by Reducing Scaling Operations in Distributed Stream
Processing", PVLDB 12(7), section 2.2. All operators are filtered in one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from include.controllers.pvldb127.filters.memory import NothingKept

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One measurement of every operator that the monitor read, instance by instance.

    ``z`` (instances, metrics) is the measured state and ``rate`` (operators,) the items per
    second that arrive for the operator: D of the paper. ``starting`` (operators,) counts instances
    that are not ready: they belong to B and do nothing yet.
    """

    t_s: float
    operators: tuple[str, ...]
    starting: NDArray[np.int64]
    rate: F64
    instances: tuple[str, ...]
    operator_of: NDArray[np.int64]
    """(instances,): index into ``operators``, ascending."""
    z: F64

    @property
    def metrics(self) -> int:
        """How many metrics the state has."""
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
