"""DRS: dynamic resource scheduling by queueing theory (Fu et al., ICDCS 2015; ADSC-Resa/resa)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from include.controllers.autoscalers.base import Autoscaler, Recommendation, target_of
from include.controllers.autoscalers.rates import Counts, Rate, rates_since
from include.controllers.base import Gauge
from include.model.decision import Reason, Why
from include.model.observation import Observation

MAX_IN_ALL = 1000
"""Instances of all operators; ours, so that the allocation ends (AUTO-MAX)."""


@dataclass(frozen=True, slots=True)
class Station:
    """An operator of the Jackson network: its arrivals, what a server does, and its visits by an
    item of the sources. Rates are per second."""

    arrived_per_s: float
    served_per_s: float
    visits: float

    @property
    def least(self) -> int:
        """The fewest servers with which its queue does not grow."""
        return int(self.arrived_per_s / self.served_per_s) + 1

    def sojourn_s(self, servers: int) -> float:
        """Mean time of a visit in M/M/k by Erlang's C formula; infinite when it is overloaded."""
        offered, blocked = self.arrived_per_s / self.served_per_s, 1.0
        for count in range(1, servers + 1):  # Erlang B, one server more at a time
            blocked = offered * blocked / (count + offered * blocked)
        spare_per_s = servers * self.served_per_s - self.arrived_per_s
        if offered >= servers or spare_per_s <= 0:  # rounding may say only one of the two
            return math.inf
        if offered == 0:
            return 1 / self.served_per_s
        share = offered / servers
        waits = blocked / (1 - share * (1 - blocked))
        return waits / spare_per_s + 1 / self.served_per_s


class Greedy:
    """Servers given one at a time to the station where one saves most, from the least counts on."""

    def __init__(self, stations: Mapping[str, Station]) -> None:
        """Every station gets as few as it can do with."""
        self._stations = stations
        self.servers = {name: station.least for name, station in stations.items()}
        self._times_s = {
            name: station.visits * station.sojourn_s(station.least)
            for name, station in stations.items()
        }
        self._best = [self._one_more(place, name) for place, name in enumerate(stations)]
        heapq.heapify(self._best)  # of equals the first station comes first
        self.total = sum(self.servers.values())

    def _one_more(self, place: int, name: str) -> tuple[float, int, str, float]:
        """What one server more saves every item of the sources, below 0 for the heap, and what the
        visits of one take then."""
        station, servers = self._stations[name], self.servers[name]
        now_s, after_s = station.sojourn_s(servers), station.sojourn_s(servers + 1)
        return -station.visits * (now_s - after_s), place, name, station.visits * after_s

    @property
    def sojourn_s(self) -> float:
        """Mean time of an item of the sources in the network."""
        return sum(self._times_s.values())

    def give_one(self) -> None:
        _, place, name, time_s = self._best[0]
        self.servers[name] += 1
        self.total += 1
        self._times_s[name] = time_s
        heapq.heapreplace(self._best, self._one_more(place, name))


def sojourn_s(stations: Mapping[str, Station], servers: Mapping[str, int]) -> float:
    """Mean time of an item of the sources in the network with so many servers."""
    return sum(one.visits * one.sojourn_s(servers[name]) for name, one in stations.items())


def best_of(stations: Mapping[str, Station], total: int) -> dict[str, int] | None:
    """``suggestAllocationGeneralTop``: the best use of so many; None if they are too few."""
    greedy = Greedy(stations)
    if greedy.total > total:
        return None
    while greedy.total < total:
        greedy.give_one()
    return greedy.servers


def fewest(
    stations: Mapping[str, Station], qos_s: float, correction: float, most: int
) -> dict[str, int] | None:
    """``getMinReqServerAllocationGeneralTop``: the fewest servers that keep ``qos_s``, or None."""
    least_s = sum(one.visits / one.served_per_s for one in stations.values())
    if least_s * correction >= qos_s:
        return None
    greedy = Greedy(stations)
    while greedy.total <= most and greedy.sojourn_s * correction > qos_s:
        greedy.give_one()
    return greedy.servers if greedy.total <= most else None


@dataclass(frozen=True, slots=True)
class DrsMemory:
    """Counts of the last look, and by operator the last rate of one instance at work and the
    instances of then."""

    counts: Counts = field(default_factory=dict)
    served_per_s: Mapping[str, float] = field(default_factory=dict)
    instances: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Drs(Autoscaler):
    """The fewest instances with which an item of the sources takes ``qos_ms`` on average.

    With ``qos_ms`` 0 that is what o_slo allows it at every operator that it visits. There are
    never more than MAX_IN_ALL instances. The first look after their number has changed only
    measures anew (``ResourceScheduler.OptimizeTask``).
    """

    interval_s: float = 30.0
    qos_ms: float = 0.0

    watches = "mean time of an item in the network, ms"
    may_be_zero = frozenset({"qos_ms"})

    def initial_memory(self) -> DrsMemory:
        return DrsMemory()

    def waits(self, memory: DrsMemory, seen: Observation) -> Why | None:
        instances = _instances(seen)
        if all(memory.instances.get(name, count) == count for name, count in instances.items()):
            return None
        return Why(Reason.SETTLING, "it measures anew after a change")

    def targets(
        self, memory: DrsMemory, seen: Observation
    ) -> tuple[DrsMemory, dict[str, Recommendation]]:
        """Fit the network, then allocate; where the QoS cannot be kept, the best of what runs."""
        waits = self.waits(memory, seen)
        counts, rates = rates_since(memory.counts, seen)
        if waits:
            return DrsMemory(counts, {}, {**memory.instances, **_instances(seen)}), {}
        served = _served(memory, rates)
        memory = DrsMemory(counts, served, {**memory.instances, **_instances(seen)})
        stations = self._stations(rates, served)
        current = {name: len(seen.serving(name)) for name in stations}
        if not stations or not all(current.values()):
            return memory, {}
        qos_s = self._qos_s(stations)
        correction = self._correction(stations, current, seen)
        wanted = fewest(stations, qos_s, correction, MAX_IN_ALL)
        if wanted is None:
            wanted = best_of(stations, sum(current.values())) or current
        detail = f"an item of the sources shall take {qos_s * 1000:.0f} ms"
        return memory, {
            name: target_of(current[name], wanted[name], detail, Reason.SLO_AT_RISK, Reason.SLO_MET)
            for name in stations
        }

    def watched(self, memory: DrsMemory, seen: Observation, operator: str) -> Gauge | None:
        """The estimate with its correction against the QoS: one number for all operators; None
        where a queue grows without end, and where it measures anew."""
        if self.waits(memory, seen):
            return None
        _, rates = rates_since(memory.counts, seen)
        stations = self._stations(rates, _served(memory, rates))
        current = {name: len(seen.serving(name)) for name in stations}
        if not stations or not all(current.values()):
            return None
        expected_s = sojourn_s(stations, current)
        if math.isinf(expected_s):
            return None
        corrected_s = expected_s * self._correction(stations, current, seen)
        return Gauge(1000 * corrected_s, high=1000 * self._qos_s(stations))

    def _stations(
        self, rates: Mapping[str, Rate], served: Mapping[str, float]
    ) -> dict[str, Station]:
        """All operators that have ever worked; none unless the sources are known."""
        arrived = {name: one.arrived_per_s for name, one in rates.items()}
        sources = self._paths.source_rates(arrived)
        in_all = sum(sources.values())
        if len(sources) < len(self._paths.sources) or in_all <= 0:
            return {}
        return {
            name: Station(per_s, served[name], per_s / in_all)
            for name, per_s in arrived.items()
            if name in served
        }

    def _qos_s(self, stations: Mapping[str, Station]) -> float:
        if self.qos_ms:
            return self.qos_ms / 1000
        operators = self.setting.topology.operator
        return sum(one.visits * operators[name].slo_ms for name, one in stations.items()) / 1000

    @staticmethod
    def _correction(
        stations: Mapping[str, Station], current: Mapping[str, int], seen: Observation
    ) -> float:
        """``checkOptimized``: how much longer items really take than the network says."""
        durations_ms = {name: seen.operators[name].duration_ms for name in stations}
        expected_s = sojourn_s(stations, current)
        really_s = sum(
            one.visits * (durations_ms[name] or 0.0) / 1000 for name, one in stations.items()
        )
        # Nothing is expected where what the sources send reaches none that has ever worked.
        return max(1.0, really_s / expected_s) if expected_s > 0 else 1.0


def _served(memory: DrsMemory, rates: Mapping[str, Rate]) -> dict[str, float]:
    """The last rate of one instance at work, by operator, this look included."""
    true = {name: rate.true_per_s for name, rate in rates.items() if rate.true_per_s is not None}
    return {**memory.served_per_s, **true}


def _instances(seen: Observation) -> dict[str, int]:
    return {name: len(seen.serving(name)) for name in sorted(seen.operators)}
