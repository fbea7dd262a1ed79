"""The same queueing network as one loop over a heap of events: no framework, plain Python.

It takes the same draws as the simulated testbed, item by item, so that without stalls both agree
to the microsecond. Hosts, monitoring and control are left out, which favours the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush

from include.model.topology import Topology
from include.testbeds.simulated.kernel import BLOCK
from include.testbeds.simulated.publications import Publications
from include.testbeds.simulated.variates import drawn_latency_us, drawn_service_us
from include.testbeds.virtual.calibration import VirtualCalibration
from include.testbeds.virtual.draws import Draws
from include.workloads.pattern import Levels


class HeapNetwork:
    """Counts executions; ``recorded`` keeps (operator, number, done, duration, wait), times in us,
    of every item that is sampled. Nodes are operators in flow order, then sources."""

    def __init__(self, topology: Topology, calibration: VirtualCalibration, seed: int) -> None:
        self.topology, self.calibration, self.draws = topology, calibration, Draws(seed)
        self.recorded: list[tuple[str, int, int, int, int]] = []
        self.names = (*topology.flow_order, *(source.name for source in topology.sources))
        place = {name: i for i, name in enumerate(self.names)}
        edges = sorted(topology.edges, key=lambda e: (place[e.target], place[e.origin]))
        self.target = [place[edge.target] for edge in edges]
        self.out = [
            [
                (e, edge.items_out, edge.items_in)
                for e, edge in enumerate(edges)
                if edge.origin == name
            ]
            for name in self.names
        ]
        self.numbered = [0] * len(place)
        self.drawn: list[list[tuple[int, int]]] = [[] for _ in place]
        self.published_us: dict[int, list[int]] = {}
        # Of an arrival (time, edge, published, 0, 0); of an item that is done or published
        # (time, -1 - node, published, number, its latency).
        self.events: list[tuple[int, int, int, int, int]] = []

    def run(
        self, levels_of: Mapping[str, Levels], servers: Mapping[str, int], duration_s: float
    ) -> int:
        """Simulate and return how many items were executed."""
        events, operators = self.events, len(self.topology.operators)
        for node, source in enumerate(self.topology.sources, operators):
            rate = source.items_per_level / self.topology.emission_period_s
            items = Publications.from_levels(levels_of[source.name], rate, duration_s)
            self.published_us[node] = items.times_us(0, int(items.first[-1])).tolist()
            self._publish(node)
        idle = [servers[name] for name in self.names[:operators]]
        queues: list[deque[tuple[int, int]]] = [deque() for _ in idle]
        finished, end_us = 0, round(duration_s * 1e6)
        while events and events[0][0] < end_us:
            now_us, edge, published_us, number, latency_us = heappop(events)
            if edge >= 0:
                node = self.target[edge]
                if idle[node]:
                    idle[node] -= 1
                    self._start(node, now_us, now_us, published_us, end_us)
                else:
                    queues[node].append((now_us, published_us))
                continue
            node = -1 - edge
            for e, out, per in self.out[node]:
                for _ in range((number + 1) * out // per - number * out // per):
                    heappush(events, (now_us + latency_us, e, now_us, 0, 0))
            if node >= operators:
                self._publish(node)
                continue
            finished += 1
            if queues[node]:
                self._start(node, now_us, *queues[node].popleft(), end_us)
            else:
                idle[node] += 1
        return finished

    @property
    def durations_s(self) -> dict[str, list[float]]:
        """The sampled processing durations of every operator."""
        by: dict[str, list[float]] = {name: [] for name in self.topology.operator_names}
        for name, _, _, duration_us, _ in self.recorded:
            by[name].append(duration_us / 1e6)
        return by

    def _start(
        self, node: int, now_us: int, arrival_us: int, published_us: int, end_us: int
    ) -> None:
        number, service_us, latency_us = self._next(node)
        done_us = now_us + service_us
        heappush(self.events, (done_us, -1 - node, published_us, number, latency_us))
        if number % self.calibration.sample_every_items == 0 and done_us < end_us:
            times_us = done_us, done_us - published_us, now_us - arrival_us
            self.recorded.append((self.names[node], number, *times_us))

    def _publish(self, node: int) -> None:
        if self.numbered[node] < len(self.published_us[node]):
            number, _, latency_us = self._next(node)
            now_us = self.published_us[node][number]
            heappush(self.events, (now_us, -1 - node, now_us, number, latency_us))

    def _next(self, node: int) -> tuple[int, int, int]:
        """The number of the next item of a node, how long it takes, and how long it travels."""
        number = self.numbered[node]
        self.numbered[node] = number + 1
        if number % BLOCK == 0:
            self.drawn[node] = self._block(self.names[node], number // BLOCK)
        return number, *self.drawn[node][number % BLOCK]

    def _block(self, name: str, block: int) -> list[tuple[int, int]]:
        calibration, service_us = self.calibration, [0] * BLOCK
        purpose, latency_ms = "source", calibration.latency_ms
        if name in self.topology.operator:
            purpose, latency_ms = "operator", calibration.transfer_ms or latency_ms
        generator = self.draws.generator(purpose, name, block)
        if name in self.topology.operator:
            mean_ms = calibration.service_ms[name]
            service_us = drawn_service_us(generator, mean_ms, calibration.service_cv).tolist()
        return list(zip(service_us, drawn_latency_us(generator, latency_ms).tolist(), strict=True))
