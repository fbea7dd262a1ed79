"""What one decision knows of the loads of hosts and operators, and how it moves operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from functools import cached_property

from include.controllers.base import Setting
from include.controllers.fugu.bins import BinItem, Bins, decreasing, fits_empty, largest_subset
from include.controllers.plan import Plan
from include.model.decision import Reason, Why
from include.model.observation import HostSample, Observation

UNITS = 1000
"""The subset sum problem counts loads in thousandths of a host's CPU."""


class Placed(Enum):
    """What became of a decision to move operators off a host."""

    MOVED = "moved"
    WAITS = "waits for a new host"
    REFUSED = "refused"
    ALL_LEASED = "needs a host, and all are leased"
    NOT_NEEDED = "not needed any more"


class Cluster:
    """Measured loads, kept true while operators move. Loads are shares of a host's CPU.

    ``expected`` are hosts whose measurement does not show yet what they were given; the larger
    of the two loads counts. Placement fills hosts up to the load ``limit``.
    """

    def __init__(
        self,
        setting: Setting,
        observation: Observation,
        plan: Plan,
        *,
        expected: Mapping[str, float],
        limit: float,
    ) -> None:
        self.plan = plan
        self.limit = limit
        self._samples = {host.host: host for host in plan.hosts}
        self.loads = {
            host.host: min(host.cpu_share, 1.0)
            for host in plan.hosts
            if host.up and host.cpu_share is not None
        }
        self._setting, self._observation = setting, observation
        shared = setting.flavor.cpu_shared
        self._up, self._booting = Bins(shared), Bins(shared)
        up = [plan.free[name] for name in self.loads]
        filled = [max(self.loads[room.host], expected.get(room.host, 0.0)) for room in up]
        self._up.add(up, (limit - load for load in filled))
        booting = [plan.free[host.host] for host in plan.hosts if self._is_coming(host)]
        self._booting.add(booting, [limit] * len(booting))
        self._position = {host: i for i, host in enumerate(self._up.hosts)}
        self._places: dict[str, Counter[int]] = {}
        self.touched: dict[str, float] = {}
        """Hosts that lost or received operators, and their expected load."""

    def _is_coming(self, host: HostSample) -> bool:
        """Whether the host boots, or came up and was not measured yet."""
        return host.host not in self.loads and self.plan.is_empty(host.host)

    def movable(self, host: str) -> list[BinItem]:
        """Running instances of a measured host, with measured loads.

        Loads are scaled down if their sum exceeds the host's load, which happens where instances
        use less than a core per busy second.
        """
        items = [
            (instance, instance.cpu_share / self._setting.flavor.vcpus)
            for instance in self.plan.on_host(host)
            if instance.ready
            and instance.cpu_share is not None
            and instance.operator in self._observation.operators
        ]
        total = sum(load for _, load in items)
        scale = min(1.0, self.loads[host] / total) if total else 1.0
        return [
            BinItem(instance, self.plan.operator(instance.operator), load * scale)
            for instance, load in items
        ]

    def marked(self, host: str, target: float) -> list[BinItem]:
        """Operators to move away so that the host's load falls to ``target``.

        The host keeps the subset with the largest load below the target, and operators that would
        not fit an empty host.
        """
        empty = self._setting.flavor.capacity
        items = [
            item
            for item in self.movable(host)
            if fits_empty(item, empty, self.limit, self._setting.flavor.cpu_shared)
        ]
        stays = self.loads[host] - sum(item.load for item in items)
        weights = [round(item.load * UNITS) for item in items]
        kept = set(largest_subset(weights, max(0, int((target - stays) * UNITS))))
        return [item for position, item in enumerate(items) if position not in kept]

    def scale_out(self, over: Mapping[str, Why], target: float) -> dict[str, Placed]:
        """Bring the hosts in ``over`` (with reasons) down to the target.

        Places all marked operators together, the heaviest first, on hosts that are up, else on
        booting hosts, else on a new one. Operators placed on a booting host do not move yet; a
        later decision moves them when that host is up.
        """
        marked = {host: self.marked(host, target) for host in over}
        for host in over:
            self._up.close(self._position[host])
        results: dict[str, set[Placed]] = {host: set() for host in over}
        for item in decreasing(item for items in marked.values() for item in items):
            host = item.instance.host
            results[host].add(self._place(item, over[host]))
        return {host: self._outcome(host, outcomes, target) for host, outcomes in results.items()}

    def _outcome(self, host: str, outcomes: set[Placed], target: float) -> Placed:
        for placed in (Placed.WAITS, Placed.MOVED, Placed.ALL_LEASED):
            if placed in outcomes:
                return placed
        return Placed.REFUSED if self.loads[host] > target else Placed.NOT_NEEDED

    def scale_in(self, host: str, why: Why) -> bool:
        """Empty a host and release it. Returns False and does nothing if not all instances fit, or
        if this decision puts one there.
        """
        if self.plan.is_given_work(host):
            return False
        items = self.movable(host)
        moves = None
        if len(items) == len(self.plan.on_host(host)) and len(self.loads) > 1:
            moves = self._fit_all(items, host)
        if moves is None:
            return False
        for item, position in moves:
            self._move(item, position, why)
        self.plan.release(self._samples[host], why + f"; {len(moves)} operators found other hosts")
        del self.loads[host]
        self.touched.pop(host, None)
        return True

    def _fit_all(self, items: list[BinItem], host: str) -> list[tuple[BinItem, int]] | None:
        """Where each item goes when the host takes nothing itself; None unless all fit."""
        mark, moves = self._up.mark(), []
        self._up.close(self._position[host])
        if sum(item.load for item in items) <= self._up.total_free_load():
            for item in decreasing(items):
                position = self._up.first_fit(item, self._near(item))
                if position is None:
                    break
                self._up.put(item, position)
                moves.append((item, position))
        if len(moves) < len(items):
            self._up.undo(mark)
            return None
        return moves

    def _place(self, item: BinItem, why: Why) -> Placed:
        position = self._up.first_fit(item, self._near(item))
        if position is not None:
            self._up.put(item, position)
            self._move(item, position, why)
            return Placed.MOVED
        coming = self._booting.first_fit(item)
        if coming is None:
            if not self.plan.fits_an_empty_host(item.operator):
                return Placed.ALL_LEASED
            sentence = f"{why}: {item.instance.instance} ({item.load:.2f}) fits no host"
            handle = self.plan.lease(Why(Reason.NO_CAPACITY, sentence))
            self._booting.add([self.plan.free[handle]], [self.limit])
            coming = len(self._booting.hosts) - 1
        self._booting.put(item, coming)
        return Placed.WAITS

    def _move(self, item: BinItem, position: int, why: Why) -> None:
        origin, host = item.instance.host, self._up.hosts[position]
        after = self.limit - self._up.free_load(position)
        moves = f"{item.instance.instance} ({item.load:.2f}) moves to {host}"
        self.plan.migrate(item.instance, host, why + f": {moves}, then at {after:.2f}")
        self.touched[host] = after
        self.touched[origin] = self.touched.get(origin, self.loads[origin]) - item.load
        where = self._where(item.operator.name)
        where[position] += 1
        where[self._position[origin]] -= 1

    def _near(self, item: BinItem) -> set[int]:
        """Positions of the hosts that hold neighbours of the item's operator."""
        names = self._neighbours.get(item.operator.name, ())
        return {place for name in names for place, n in self._where(name).items() if n > 0}

    @cached_property
    def _neighbours(self) -> dict[str, list[str]]:
        """Operators that exchange items, by operator."""
        neighbours: dict[str, list[str]] = {}
        for edge in self._setting.topology.edges:
            if edge.origin in self._setting.topology.operator:
                neighbours.setdefault(edge.origin, []).append(edge.target)
                neighbours.setdefault(edge.target, []).append(edge.origin)
        return neighbours

    def _where(self, operator: str) -> Counter[int]:
        if operator not in self._places:
            serving = self._observation.serving(operator)
            hosts = (instance.host for instance in serving if instance.host in self._position)
            self._places[operator] = Counter(self._position[host] for host in hosts)
        return self._places[operator]
