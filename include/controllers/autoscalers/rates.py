"""Rates per operator since the last look, and how those of the sources reach every operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from include.model.observation import Observation, OperatorSample
from include.model.topology import Edge, Topology

Counts = Mapping[str, tuple[float, int, int]]
"""By operator: when it was read last, items arrived and completed by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """An operator since the last look. ``ready`` instances could work at the end of that time."""

    since_s: float
    arrived_per_s: float
    completed_per_s: float
    busy_share: float | None
    busiest_share: float | None
    ready: int

    @property
    def true_per_s(self) -> float | None:
        """DS2: items per second that one instance completes while it works; None if none did."""
        if self.busy_share is None or self.ready == 0:
            return None
        worked = self.busy_share * self.ready
        return self.completed_per_s / worked if worked > 0 and self.completed_per_s > 0 else None


def rates_since(last: Counts, seen: Observation) -> tuple[Counts, dict[str, Rate]]:
    """The counts of this look, and a rate for every operator that was read now and before."""
    counts, rates = dict(last), dict[str, Rate]()
    for name in sorted(seen.operators):
        sample = seen.operators[name]
        if sample.arrived_in_all is None or sample.completed_in_all is None:
            continue
        before_s, arrived, completed = last.get(name, (seen.now_s, 0, 0))
        if name in last and seen.now_s <= before_s:
            continue
        counts[name] = (seen.now_s, sample.arrived_in_all, sample.completed_in_all)
        if name in last:
            changes = (sample.arrived_in_all - arrived, sample.completed_in_all - completed)
            rates[name] = _rate(sample, seen, seen.now_s - before_s, changes)
    return counts, rates


def _rate(
    sample: OperatorSample, seen: Observation, since_s: float, changes: tuple[int, int]
) -> Rate:
    return Rate(
        since_s=since_s,
        arrived_per_s=changes[0] / since_s,
        completed_per_s=changes[1] / since_s,
        busy_share=sample.busy_share,
        busiest_share=sample.busiest_share,
        ready=sum(one.ready for one in seen.serving(sample.operator)),
    )


class Paths:
    """The edges of a topology in flow order; made once."""

    def __init__(self, topology: Topology) -> None:
        self.order = topology.flow_order
        self.sources = tuple(source.name for source in topology.sources)
        self.inbound: dict[str, list[Edge]] = {name: [] for name in self.order}
        for edge in topology.edges:
            self.inbound[edge.target].append(edge)

    @property
    def entries(self) -> tuple[str, ...]:
        """Operators that sources alone feed: what Flink calls a source."""
        return tuple(
            name
            for name in self.order
            if all(edge.origin in self.sources for edge in self.inbound[name])
        )

    def source_rates(self, arrived_per_s: Mapping[str, float]) -> dict[str, float]:
        """Items per second of the sources that alone feed an operator that was read."""
        rates: dict[str, float] = {}
        for name in self.order:
            edges = self.inbound[name]
            if len(edges) == 1 and edges[0].origin in self.sources and name in arrived_per_s:
                rates[edges[0].origin] = arrived_per_s[name] / ratio(edges[0])
        return rates

    def propagated(
        self, source_per_s: Mapping[str, float], otherwise: Mapping[str, float]
    ) -> dict[str, float]:
        """What reaches each operator; ``otherwise`` where a source of it is not known."""
        rates = dict(source_per_s)
        for name in self.order:
            edges = self.inbound[name]
            if all(edge.origin in rates for edge in edges):
                rates[name] = sum(rates[edge.origin] * ratio(edge) for edge in edges)
            elif name in otherwise:
                rates[name] = otherwise[name]
        return {name: rates[name] for name in self.order if name in rates}


def ratio(edge: Edge) -> float:
    """Items that leave along an edge per item that enters its origin."""
    return edge.items_out / edge.items_in
