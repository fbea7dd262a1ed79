"""The same queueing network in SimPy, written as its users would: the named alternative.

Sources, per-item FIFO queues, servers, service and messaging times are those of the simulated
testbed; hosts, monitoring and control are left out, which favours SimPy.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
import simpy

from include.model.topology import Topology
from include.testbeds.simulated.publications import Publications
from include.testbeds.virtual.calibration import VirtualCalibration
from include.workloads.pattern import Levels

BLOCK = 4096


class SimpyNetwork:
    """Counts executions; ``durations_s`` keeps every tenth processing duration by operator."""

    def __init__(self, topology: Topology, calibration: VirtualCalibration, seed: int) -> None:
        self.env = simpy.Environment()
        self.topology, self.calibration = topology, calibration
        self.random = np.random.default_rng(seed)
        self.queues = {name: simpy.Store(self.env) for name in topology.operator_names}
        self.out = {
            name: [edge for edge in topology.edges if edge.origin == name]
            for name in (*topology.operator_names, *topology.source)
        }
        self.finished = dict.fromkeys(topology.operator_names, 0)
        self.durations_s: dict[str, list[float]] = {name: [] for name in topology.operator_names}
        self._latencies: list[float] = []

    def run(
        self, levels_of: Mapping[str, Levels], servers: Mapping[str, int], duration_s: float
    ) -> int:
        """Simulate and return how many items were executed."""
        for source in self.topology.sources:
            rate = source.items_per_level / self.topology.emission_period_s
            items = Publications.from_levels(levels_of[source.name], rate, duration_s)
            times_s = items.times_us(0, int(items.first[-1])) / 1e6
            self.env.process(self._publish(source.name, times_s.tolist()))
        for name, count in servers.items():
            for _ in range(count):
                self.env.process(self._serve(name))
        self.env.run(until=duration_s)
        return sum(self.finished.values())

    def _publish(self, name: str, times_s: list[float]) -> Generator[Any, Any, None]:
        for time_s in times_s:
            yield self.env.timeout(time_s - self.env.now)
            for edge in self.out[name]:
                self._send(edge.target)

    def _serve(self, name: str) -> Generator[Any, Any, None]:
        queue, cv = self.queues[name], self.calibration.service_cv
        mean_s, shape = self.calibration.service_ms[name] / 1000, 1 / cv**2
        service_s: list[float] = []
        while True:
            published_s = yield queue.get()
            if not service_s:
                service_s = (self.random.standard_gamma(shape, BLOCK) * mean_s / shape).tolist()
            yield self.env.timeout(service_s.pop())
            number = self.finished[name]
            self.finished[name] = number + 1
            if number % 10 == 0:
                self.durations_s[name].append(self.env.now - published_s)
            for edge in self.out[name]:
                out, per = edge.items_out, edge.items_in
                for _ in range((number + 1) * out // per - number * out // per):
                    self._send(edge.target)

    def _send(self, target: str) -> None:
        if not self._latencies:
            mean_s = self.calibration.latency_ms / 1000
            self._latencies = (self.random.standard_exponential(BLOCK) * mean_s).tolist()
        arrival = self.env.timeout(self._latencies.pop(), self.env.now)
        queue = self.queues[target]
        arrival.callbacks.append(lambda event: queue.put(event.value))
