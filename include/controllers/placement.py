"""Free capacity of hosts, and the host that takes an instance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.controllers.bulk_placement import BulkPlacement, with_place
from include.controllers.host_selection import CACHE_FACTOR, uncached, uncached_of_one
from include.model.host import Capacity
from include.model.topology import Operator

Ranking = Callable[[NDArray[np.float64], Operator], NDArray[np.float64]]
"""Suitability of hosts for an operator, as :func:`uncached`."""

FEW = 12
"""Up to this many hosts a loop ranks faster than numpy."""


@dataclass(frozen=True, slots=True)
class FreeCapacity:
    """What instances may still reserve on one host.

    A host whose machine still boots (``up`` is false) has room for instances that wait for it.
    """

    host: str
    total: Capacity
    left: Capacity
    images: frozenset[str]
    up: bool

    def without_one(self, op: Operator) -> FreeCapacity:
        """The same host with one instance fewer; the image stays cached."""
        return FreeCapacity(self.host, self.total, self.left.more(op), self.images, self.up)


@dataclass(frozen=True, slots=True)
class HostChoice:
    """The host that Algorithm 2 ranks first, and its suitability."""

    host: str
    suitability: float


class FreeCapacities(MutableMapping[str, FreeCapacity]):
    """Free capacity by host, in the order of the leases.

    Keeps the same numbers in arrays, so that Algorithm 2 ranks thousands of hosts at once.
    """

    def __init__(self, images: Mapping[str, frozenset[str]], numbers: NDArray[np.float64]) -> None:
        """``images`` by host; their order breaks ties. ``numbers``, shape (5, hosts): total and
        free CPU (cores) and memory (MB), and 1 if the host is up.
        """
        self._hosts = list(images)
        self.place = {host: place for place, host in enumerate(self._hosts)}
        self._images = images
        self._numbers = numbers
        self._cached: dict[str, list[int]] | None = None
        """Places of the hosts that had an image from the beginning, in order."""
        self._places_with: dict[str, NDArray[np.intp]] = {}
        """Of images that were asked for, those that have it now. They are never written to."""
        self._images_since: dict[str, frozenset[str]] = {}
        self._gone: frozenset[str] = frozenset()
        self._booting: NDArray[np.intp] | None = None
        self._changed: list[int] = []
        self._uncached: dict[tuple[float, float, Ranking], tuple[NDArray[np.float64], int]] = {}
        """By size of an operator and ranking: suitability of every host without its image, and how
        many entries of ``_changed`` it includes. Copies share the arrays; they are never written
        to."""

    def copy(self) -> FreeCapacities:
        self._with_image("")  # computed here once, not in every copy
        other = copy(self)
        other._numbers = self._numbers.copy()
        other._places_with = dict(self._places_with)
        other._images_since = dict(self._images_since)
        other._changed = list(self._changed)
        other._uncached = dict(self._uncached)
        return other

    def __getitem__(self, host: str) -> FreeCapacity:
        row = self._numbers[:, self.place[host]].tolist()
        images = self._images_on(host)
        return FreeCapacity(host, Capacity(*row[:2]), Capacity(*row[2:4]), images, up=bool(row[4]))

    def __setitem__(self, host: str, free: FreeCapacity) -> None:
        """Change what is left on a host, or add a host at the end."""
        if host not in self.place:
            # Copies share these, so replace them instead of changing them.
            self.place = {**self.place, host: len(self._hosts)}
            self._hosts = [*self._hosts, host]
            self._images = {**self._images, host: frozenset()}
            self._numbers = np.append(self._numbers, [[number] for number in _row(free)], axis=1)
            self._uncached = {}
            self._booting = None
        place = self.place[host]
        self._numbers[:, place] = _row(free)
        self._changed.append(place)
        for name in free.images - self._images_on(host):
            self._put_image(name, place)
        self._images_since[host] = free.images

    def reserve(self, host: str, op: Operator) -> None:
        """Reserve what one instance needs, and have its image in the cache."""
        place, images = self.place[host], self._images_on(host)
        self._numbers[2, place] -= op.cpu_cores
        self._numbers[3, place] -= op.memory_mb
        self._changed.append(place)
        if op.name not in images:
            self._put_image(op.name, place)
            self._images_since[host] = images | {op.name}

    def most_left(self, *, only_up: bool) -> Capacity:
        """The most CPU and the most memory that are left on any host; it need not be the same.

        With ``only_up`` hosts that boot do not count.
        """
        left = self._numbers[2:4, self._numbers[4] > 0] if only_up else self._numbers[2:4]
        return Capacity(*left.max(axis=1, initial=0.0).tolist())

    @property
    def up(self) -> set[str]:
        return {self._hosts[place] for place in np.flatnonzero(self._numbers[4]).tolist()}

    def reserve_best(
        self, operators: Iterable[Operator], *, only_up: bool = False
    ) -> list[str | None]:
        """Reserve the :meth:`best` host for one instance after the other.

        None where an instance fits nowhere any more.
        """
        bulk = BulkPlacement(self._numbers, self._places_that_boot() if only_up else _NOWHERE)
        chosen = bulk.places(operators, self._with_image)
        self._numbers[2:4] = bulk.left
        # Recompute all hosts on the next query instead of tracking so many changes.
        self._uncached, self._changed = {}, []
        self._places_with |= bulk.images
        for place, names in bulk.pulled.items():
            host = self._hosts[place]
            self._images_since[host] = self._images_on(host) | names
        return [None if place is None else self._hosts[place] for place in chosen]

    def _images_on(self, host: str) -> frozenset[str]:
        return self._images_since.get(host) or self._images[host]

    def _put_image(self, name: str, place: int) -> None:
        self._places_with[name] = with_place(self._with_image(name), place)

    def __delitem__(self, host: str) -> None:
        """Take a host out; nothing fits there any more."""
        self._numbers[:, self.place[host]] = _GONE
        self._changed.append(self.place[host])
        self._gone = self._gone | {host}

    def __iter__(self) -> Iterator[str]:
        """Hosts in the order of their lease."""
        return (host for host in self.place if host not in self._gone)

    def __len__(self) -> int:
        return len(self.place) - len(self._gone)

    def __contains__(self, host: object) -> bool:
        return host in self.place and host not in self._gone

    def best(
        self,
        op: Operator,
        cache_factor: float = CACHE_FACTOR,
        rank: Ranking = uncached,
        *,
        only_up: bool = False,
        leaving: str | None = None,
    ) -> HostChoice | None:
        """The lowest suitability that is not negative; the host leased first wins a tie.

        ``rank`` computes it without the image. With ``only_up`` hosts that boot do not count, and
        ``leaving`` never does. None when the instance fits nowhere.
        """
        if not self.place:
            return None
        values = self._without_image(op, rank)
        out = self._places_that_boot() if only_up else _NOWHERE
        if len(out) or leaving in self.place:
            values = values.copy()
            values[out] = np.inf
            if leaving in self.place:
                values[self.place[leaving]] = np.inf
        # An image can only make a host better: the best is the best of all without it, or one of
        # the few that have it.
        place = int(values.argmin())
        lowest = float(values[place])
        cached = self._with_image(op.name)
        if len(cached):
            better = values[cached] * cache_factor
            at = int(better.argmin())
            lowest, place = min((lowest, place), (float(better[at]), int(cached[at])))
        return HostChoice(self._hosts[place], lowest) if lowest < np.inf else None

    def first(self, op: Operator) -> str | None:
        """First fit: the host leased first that has room, or None."""
        if not self.place:
            return None
        fits = self._fits(op)
        place = int(fits.argmax())
        return self._hosts[place] if fits[place] else None

    def emptiest(self, op: Operator, *, only_up: bool = False) -> str | None:
        """The host with room that has promised the least of its CPU, or None.

        With ``only_up`` hosts that boot do not count.
        """
        if not self.place:
            return None
        left = np.where(self._fits(op), self._numbers[2], -np.inf)
        if only_up:
            left[self._places_that_boot()] = -np.inf
        place = int(left.argmax())
        return self._hosts[place] if left[place] > -np.inf else None

    def without_place(self, operators: Iterable[Operator], leaving: str) -> int:
        """How many instances, one after the other, fit on no host that is up, but for one.

        Each takes room on every host where it fits.
        """
        left = self._numbers[2:4].copy()
        left[:, self._places_that_boot()] = -1.0
        left[:, self.place[leaving]] = -1.0
        without = 0
        for op in operators:
            needs = np.array([[op.cpu_cores], [op.memory_mb]])
            fits = (left / needs >= 1).all(axis=0)
            left[:, fits] -= needs
            without += not fits.any()
        return without

    def _fits(self, op: Operator) -> NDArray[np.bool_]:
        fits: NDArray[np.bool_] = (self._numbers[2] / op.cpu_cores >= 1) & (
            self._numbers[3] / op.memory_mb >= 1
        )
        return fits

    def _without_image(self, op: Operator, rank: Ranking) -> NDArray[np.float64]:
        """Algorithm 2 on every host as if none had the image; infinite where there is no room."""
        size = (op.cpu_cores, op.memory_mb, rank)
        values, counted = self._uncached.get(size, (None, 0))
        if values is None:
            values = rank(self._numbers, op)
        elif counted < len(self._changed):
            at = self._changed[counted:]
            values = values.copy()
            if len(at) > FEW or rank is not uncached:
                values[at] = rank(self._numbers[:, at], op)
            else:
                for place in at:
                    values[place] = uncached_of_one(op, *self._numbers[:4, place].tolist())
        self._uncached[size] = (values, len(self._changed))
        return values

    def _with_image(self, name: str) -> NDArray[np.intp]:
        """Places of the hosts that have the image, the earliest lease first."""
        if self._cached is None:
            self._cached = defaultdict(list)
            for host, place in self.place.items():
                for image in self._images[host]:
                    self._cached[image].append(place)
        if name not in self._places_with:
            self._places_with[name] = np.array(self._cached.get(name, ()), dtype=np.intp)
        return self._places_with[name]

    def _places_that_boot(self) -> NDArray[np.intp]:
        """Places of hosts that are not up; constant during one decision."""
        if self._booting is None:
            self._booting = np.flatnonzero(self._numbers[4] <= 0)
        return self._booting


_NOWHERE = np.zeros(0, dtype=np.intp)
_GONE = (1.0, 1.0, -1.0, -1.0, 0.0)


def _row(free: FreeCapacity) -> tuple[float, float, float, float, float]:
    total, left = free.total, free.left
    return (total.cpu_cores, total.memory_mb, left.cpu_cores, left.memory_mb, float(free.up))
