"""Places thousands of instances, one after the other, each on its most suitable host."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.controllers.host_selection import CACHE_FACTOR, uncached, uncached_of_one
from include.model.topology import Operator


@dataclass(slots=True)
class SizeRanking:
    """Suitability of every host for operators that need what ``op`` needs, shape (hosts,).

    Without and with the image of the operator in the cache; infinite where there is no room.
    ``counted`` placements are included already. ``lower_bound`` is at most the lowest value
    without the image.
    """

    op: Operator
    without: NDArray[np.float64]
    with_image: NDArray[np.float64]
    counted: int = 0
    lower_bound: float = 0.0


def with_place(places: NDArray[np.intp], place: int) -> NDArray[np.intp]:
    """Places of hosts in order, and one more."""
    return np.insert(places, places.searchsorted(place), place)


class BulkPlacement:
    """Gives the answers of ``FreeCapacities.best`` for many instances in much less time."""

    def __init__(self, numbers: NDArray[np.float64], out: NDArray[np.intp]) -> None:
        """``numbers`` of FreeCapacities are only read; no instance is placed on ``out``."""
        self._numbers, self._out = numbers, out
        self._total: list[list[float]] = numbers[:2].tolist()
        self.left: list[list[float]] = numbers[2:4].tolist()
        """CPU and memory that are left on every host."""
        self.taken: list[int] = []
        """Places of hosts, in the order in which they got instances."""
        self.images: dict[str, NDArray[np.intp]] = {}
        """Places of all hosts with the image of an operator, if placements added some."""
        self.pulled: defaultdict[int, set[str]] = defaultdict(set)
        """Images that placements added, by the place of the host."""
        self._sizes: dict[tuple[float, float], SizeRanking] = {}

    def places(
        self, operators: Iterable[Operator], cached: Callable[[str], NDArray[np.intp]]
    ) -> list[int | None]:
        """Place of the host for each operator; None where it fits nowhere any more.

        ``cached`` returns the places with the image of an operator, in order.
        """
        (cores, memory_mb), taken = self.left, self.taken
        known: dict[str, tuple[SizeRanking, NDArray[np.intp]]] = {}
        chosen: list[int | None] = []
        for op in operators:
            if op.name not in known:
                known[op.name] = self._size(op), cached(op.name)
            size, having = known[op.name]
            if size.lower_bound == math.inf:  # nothing is freed here
                chosen.append(None)
                continue
            if size.counted < len(taken):
                self._update(size)
            near, place = math.inf, -1
            if len(having):
                values = size.with_image[having]
                at = values.argmin()
                near, place = values.item(at), having.item(at)
            # The image only improves a host. The best host is one of the few with the image or the
            # best of all without it; the latter are searched only while they can still win.
            if near >= size.lower_bound:
                first = size.without.argmin()
                size.lower_bound = size.without.item(first)
                if size.lower_bound == math.inf:
                    chosen.append(None)
                    continue
                # The host leased first wins a tie.
                near, place = min((near, place), (size.lower_bound, int(first)))
                if place not in having:
                    self.images[op.name] = having = with_place(having, place)
                    self.pulled[place].add(op.name)
                    known[op.name] = size, having
            cores[place] -= op.cpu_cores
            memory_mb[place] -= op.memory_mb
            taken.append(place)
            chosen.append(place)
            size.counted += 1
            self._recompute(size, place)
        return chosen

    def _size(self, op: Operator) -> SizeRanking:
        needs = op.cpu_cores, op.memory_mb
        if needs not in self._sizes:
            without = uncached(self._numbers, op)
            without[self._out] = np.inf
            self._sizes[needs] = SizeRanking(op, without, without * CACHE_FACTOR)
        return self._sizes[needs]

    def _update(self, size: SizeRanking) -> None:
        """Include placements of other sizes since the last update."""
        for place in set(self.taken[size.counted :]):
            self._recompute(size, place)
        size.counted = len(self.taken)

    def _recompute(self, size: SizeRanking, place: int) -> None:
        (total_cores, total_mb), (cores, memory_mb) = self._total, self.left
        value = uncached_of_one(
            size.op, total_cores[place], total_mb[place], cores[place], memory_mb[place]
        )
        size.without[place] = value
        size.with_image[place] = value * CACHE_FACTOR
        if value < size.lower_bound:
            size.lower_bound = value
