"""Instances that are put on hosts one after the other, each on the one that suits it best."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.controllers.suitability import CACHE_FACTOR, uncached, uncached_of_one
from include.model.topology import Operator


@dataclass(slots=True)
class Size:
    """The suitability of every host for operators of the size of ``op``, without and with their
    image; infinite where there is no room. ``known`` is how many of the instances that were put
    on hosts it has counted, ``at_least`` no more than the lowest of those without."""

    op: Operator
    without: NDArray[np.float64]
    with_image: NDArray[np.float64]
    known: int = 0
    at_least: float = 0.0


class Kind:
    """Where the image of an operator is."""

    def __init__(self, size: Size, places: Sequence[int]) -> None:
        """``places`` of the hosts that have it from the beginning, in order."""
        self.size = size
        self.cached = np.array(places, dtype=np.intp)
        self.has = set(places)
        self._places = list(places)

    def add(self, place: int) -> list[int]:
        """It is put on one more host; the places of all that have it now."""
        self.has.add(place)
        insort(self._places, place)
        self.cached = np.array(self._places, dtype=np.intp)
        return self._places


class Filling:
    """Finds places for thousands of instances, in a small part of the time that it takes to ask
    ``FreeCapacities.best`` for each; the answers are the same."""

    def __init__(self, numbers: NDArray[np.float64], out: NDArray[np.intp]) -> None:
        """``numbers`` are those of FreeCapacities, only read; no instance gets on ``out``."""
        self._numbers, self._out = numbers, out
        self._total: list[list[float]] = numbers[:2].tolist()
        self.left: list[list[float]] = numbers[2:4].tolist()
        """CPU and memory that are left on every host."""
        self.taken: list[int] = []
        """Places of hosts, in the order in which they got instances."""
        self.images: dict[str, list[int]] = {}
        """Places of all hosts that have the image of an operator, where more have it than had."""
        self._sizes: dict[tuple[float, float], Size] = {}

    def places(
        self, wanted: Iterable[Operator], cached: Callable[[str], Sequence[int]]
    ) -> list[int | None]:
        """The place of the host that each gets; None for those that fit nowhere any more.

        ``cached`` says which places have an operator's image, in order.
        """
        (cores, memory_mb), taken = self.left, self.taken
        kinds: dict[str, Kind] = {}
        found: list[int | None] = []
        for op in wanted:
            kind = kinds.get(op.name)
            if kind is None:
                kind = kinds[op.name] = Kind(self._size(op), cached(op.name))
            size = kind.size
            if size.known < len(taken):
                self._update(size)
            near, place = math.inf, -1
            if kind.has:
                values = size.with_image[kind.cached]
                at = values.argmin()
                near, place = values.item(at), kind.cached.item(at)
            # An image only makes a host better: the best is one of the few that have it, or that
            # of all without it, whom nobody has to look at while they cannot be as good.
            if near >= size.at_least:
                first = size.without.argmin()
                size.at_least = size.without.item(first)
                if size.at_least == math.inf:
                    found.append(None)
                    continue
                # The host leased first wins a tie.
                near, place = min((near, place), (size.at_least, int(first)))
            cores[place] -= op.cpu_cores
            memory_mb[place] -= op.memory_mb
            taken.append(place)
            found.append(place)
            size.known += 1
            self._look_at(size, place)
            if place not in kind.has:
                self.images[op.name] = kind.add(place)
        return found

    def _size(self, op: Operator) -> Size:
        of = op.cpu_cores, op.memory_mb
        if of not in self._sizes:
            without = uncached(self._numbers, op)
            without[self._out] = np.inf
            self._sizes[of] = Size(op, without, without * CACHE_FACTOR)
        return self._sizes[of]

    def _update(self, size: Size) -> None:
        """Hosts that have got an instance of another size since."""
        for place in set(self.taken[size.known :]):
            self._look_at(size, place)
        size.known = len(self.taken)

    def _look_at(self, size: Size, place: int) -> None:
        (total_cores, total_mb), (cores, memory_mb) = self._total, self.left
        value = uncached_of_one(
            size.op, total_cores[place], total_mb[place], cores[place], memory_mb[place]
        )
        size.without[place] = value
        size.with_image[place] = value * CACHE_FACTOR
        if value < size.at_least:
            size.at_least = value
