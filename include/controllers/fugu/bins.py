"""Operator placement: hosts are bins, operators that move are items, filled by first fit.

"An operator can only be assigned to a host, if its CPU load is less than the available capacity
on the host. As sub-constraints, enough network and RAM capacity need to be available" (section
II). Loads are shares of a host's CPU. The network is not modelled by any testbed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from include.controllers.placement import FreeCapacity
from include.model.host import Capacity
from include.model.observation import InstanceSample
from include.model.topology import Operator

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class BinItem:
    """A running instance that may move, and the share of its host's CPU that it uses."""

    instance: InstanceSample
    operator: Operator
    load: float


class Bins:
    """Free load, CPU and memory of hosts, in the order of their lease."""

    def __init__(self, cpu_shared: bool) -> None:
        """With ``cpu_shared`` the CPU that instances reserve is ignored."""
        self.hosts: list[str] = []
        self._cpu_shared = cpu_shared
        self._load = np.zeros(0)
        self._cores = np.zeros(0)
        self._memory_mb = np.zeros(0)

    def add(self, hosts: Iterable[FreeCapacity], free_loads: Iterable[float]) -> None:
        """Append hosts with their free capacity and the load that each may still take."""
        lefts = []
        for free in hosts:
            self.hosts.append(free.host)
            lefts.append(free.left)
        cores = [left.cpu_cores + ROUNDING for left in lefts]
        memory_mb = [left.memory_mb + ROUNDING for left in lefts]
        self._load = np.append(self._load, [load + ROUNDING for load in free_loads])
        self._cores = np.append(self._cores, cores)
        self._memory_mb = np.append(self._memory_mb, memory_mb)

    def first_fit(self, item: BinItem, near: Collection[int] = ()) -> int | None:
        """Position of the first host with room, preferably one of ``near``; or None."""
        if not self.hosts or self._load.max() < item.load:
            return None
        for position in sorted(near):
            if self._fits(item, position):
                return position
        fits = self._fits(item, slice(None))
        first = int(fits.argmax())
        return first if fits[first] else None

    def put(self, item: BinItem, position: int) -> None:
        """Take the item's load and what it reserves off the host at ``position``."""
        self._load[position] -= item.load
        self._cores[position] -= item.operator.cpu_cores
        self._memory_mb[position] -= item.operator.memory_mb

    def close(self, position: int) -> None:
        """Place nothing more on the host at ``position``."""
        self._load[position] = -np.inf

    def free_load(self, position: int) -> float:
        """The load that the host at ``position`` may still take."""
        return float(self._load[position])

    def total_free_load(self) -> float:
        """The load that all hosts may still take, if it could be split at will."""
        return float(self._load[self._load > 0].sum())

    def mark(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The state to return to with :meth:`undo`."""
        return self._load.copy(), self._cores.copy(), self._memory_mb.copy()

    def undo(self, mark: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        """Back to how it was at the mark."""
        self._load, self._cores, self._memory_mb = mark

    def _fits(self, item: BinItem, where: int | slice) -> Any:
        """Whether it fits one host, or an array of that for a slice of them."""
        fits = (self._load[where] >= item.load) & (
            self._memory_mb[where] >= item.operator.memory_mb
        )
        if self._cpu_shared:
            return fits
        return fits & (self._cores[where] >= item.operator.cpu_cores)


def fits_empty(item: BinItem, empty: Capacity, limit: float, cpu_shared: bool) -> bool:
    """Whether the item fits a host that takes loads up to ``limit`` and holds nothing."""
    reserved = cpu_shared or empty.cpu_cores + ROUNDING >= item.operator.cpu_cores
    return reserved and item.load <= limit and item.operator.memory_mb <= empty.memory_mb


def decreasing(items: Iterable[BinItem]) -> list[BinItem]:
    """The heaviest first; equal ones in order of their start."""
    return sorted(
        items,
        key=lambda item: (
            -item.load,
            item.instance.started_s,
            len(item.instance.instance),
            item.instance.instance,
        ),
    )


def largest_subset(weights: Sequence[int], capacity: int) -> tuple[int, ...]:
    """Positions of a subset whose sum is as large as possible and at most ``capacity``.

    Weights are not negative. Dynamic programming over reachable sums (bit s of an integer is set
    when s can be reached). Among subsets of equal sum, one without the last weights is taken.
    """
    if capacity < 0:
        return ()
    within = (1 << (capacity + 1)) - 1
    reachable = [1]
    for weight in weights:
        reachable.append((reachable[-1] | reachable[-1] << weight) & within)
    left = reachable[-1].bit_length() - 1
    chosen = []
    for position in reversed(range(len(weights))):
        if not reachable[position] >> left & 1:
            chosen.append(position)
            left -= weights[position]
    return tuple(reversed(chosen))
