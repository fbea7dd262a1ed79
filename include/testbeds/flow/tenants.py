"""What the users of a tenant see: latency at its sinks, and juice over the last minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from include.model.juice import topology_juice
from include.model.observation import TenantSample
from include.model.tenant import Intent
from include.model.topology import Topology
from include.testbeds.flow.arrays import AGES, COMPLETED, F64, I64, ITEMS, SQUARES, QueueState

SUB_WINDOW_S, SUB_WINDOWS = 10, 6
"""Henge, section 5: "a sliding window of 1 minute", "sub-windows of length 10 s"."""
NORMAL_P95 = 1.6448536269514722


@dataclass(frozen=True, slots=True)
class _TenantGraph:
    """The part of the topology that belongs to one tenant, with rows of the arrays."""

    joins_s: float
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    sink_rows: list[int]
    parents: Mapping[str, tuple[str, ...]]
    edges: tuple[tuple[str, str], ...]
    edge_rows: list[int]
    target_rows: list[int]


@dataclass(slots=True)
class Tenants:
    """Reads the counters of the queues; ``edges`` are (origin, target) in their order."""

    topology: Topology
    names: tuple[str, ...]
    edges: Sequence[tuple[str, str]]
    samples: dict[str, TenantSample] = field(default_factory=dict)
    """As of the last reading."""
    intents: dict[str, Intent | None] = field(init=False)
    _graphs: dict[str, _TenantGraph] = field(init=False)
    _sent: deque[I64] = field(init=False)
    _completed: deque[I64] = field(init=False)

    def __post_init__(self) -> None:
        self.intents = {one.name: one.intent for one in self.topology.tenants}
        self._graphs = {
            one.name: self._graph(one.name, one.joins_s) for one in self.topology.tenants
        }
        self._sent, self._completed = deque(maxlen=SUB_WINDOWS + 1), deque(maxlen=SUB_WINDOWS + 1)

    def _graph(self, tenant: str, joins_s: float) -> _TenantGraph:
        mine = {op.name for op in self.topology.operators_of(tenant)}
        row = {name: o for o, name in enumerate(self.names)}
        inside = [(e, edge) for e, edge in enumerate(self.edges) if edge[1] in mine]
        sinks = self.topology.sinks(tenant)
        return _TenantGraph(
            joins_s=joins_s,
            sources=tuple(s.name for s in self.topology.sources if s.tenant == tenant),
            sinks=sinks,
            sink_rows=[row[name] for name in sinks],
            parents={
                name: tuple(edge[0] for _, edge in inside if edge[1] == name)
                for name in self.names
                if name in mine
            },
            edges=tuple(edge for _, edge in inside),
            edge_rows=[e for e, _ in inside],
            target_rows=[row[edge[1]] for _, edge in inside],
        )

    def end_sub_window(self, state: QueueState) -> None:
        """Ten seconds are over: remember the counters."""
        self._sent.append(state.sent.copy())
        self._completed.append(state.counts[:, COMPLETED].copy())

    def read(self, now_s: float, sinks: F64) -> None:
        """A monitoring period ends; ``sinks`` is what left in it."""
        self.samples = {
            name: self._sample(name, graph, sinks)
            for name, graph in self._graphs.items()
            if graph.joins_s <= now_s
        }

    def _sample(self, name: str, graph: _TenantGraph, sinks: F64) -> TenantSample:
        items, ages, squares = sinks[graph.sink_rows].sum(axis=0)[[ITEMS, AGES, SQUARES]].tolist()
        mean_s = ages / items if items > 0 else None
        tail_s = None if mean_s is None else gamma_p95(mean_s, squares / items - mean_s**2)
        return TenantSample(
            tenant=name,
            latency_ms=None if mean_s is None else mean_s * 1000,
            tail_latency_ms=None if tail_s is None else tail_s * 1000,
            juice=self._juice(graph),
        )

    def _juice(self, graph: _TenantGraph) -> float | None:
        """None until a sub-window is over.

        What an operator executed is shared out among its parents as what it received was.
        """
        if len(self._sent) < 2:
            return None
        sent = (self._sent[-1] - self._sent[0])[graph.edge_rows].astype(float)
        executed = (self._completed[-1] - self._completed[0])[graph.target_rows].astype(float)
        received = np.zeros(len(self.names))
        np.add.at(received, graph.target_rows, sent)
        of_all = received[graph.target_rows]
        shares = np.divide(sent, of_all, out=np.zeros_like(sent), where=of_all > 0)
        return topology_juice(
            graph.sources,
            graph.sinks,
            graph.parents,
            dict(zip(graph.edges, sent.tolist(), strict=True)),
            dict(zip(graph.edges, (executed * shares).tolist(), strict=True)),
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """The counters of the sub-windows, for a snapshot."""
        none = np.zeros((0, 0), dtype=np.int64)
        return {
            "window_sent": np.array(self._sent) if self._sent else none,
            "window_completed": np.array(self._completed) if self._completed else none,
        }

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._sent.extend(arrays["window_sent"])
        self._completed.extend(arrays["window_completed"])


def gamma_p95(mean: float, variance: float) -> float:
    """The 95th percentile of a gamma distribution (Wilson and Hilferty's cube)."""
    if variance <= 0 or mean <= 0:
        return mean
    ninth = variance / mean**2 / 9
    return float(mean * max(1 - ninth + NORMAL_P95 * ninth**0.5, 0.0) ** 3)
