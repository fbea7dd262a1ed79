"""The same queueing network in Ciw, a simulator made for networks of queues.

In front of every operator stands a node with servers without end, which is the way of an item to
it. Ciw's individuals never multiply, so a node that finishes one lets it leave and sends new ones,
as many as each edge takes. Hosts, monitoring and control are left out, which favours Ciw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ciw
import numpy as np

from include.model.topology import Topology
from include.testbeds.simulated.publications import publication_times_us
from include.testbeds.virtual.calibration import VirtualCalibration
from include.workloads.pattern import Levels


class CiwNetwork:
    """Counts executions; ``durations_s`` keeps every tenth processing duration by operator."""

    def __init__(self, topology: Topology, calibration: VirtualCalibration, seed: int) -> None:
        self.topology, self.calibration = topology, calibration
        self.names = topology.in_flow_order()
        self.finished = dict.fromkeys(self.names, 0)
        self.durations_s: dict[str, list[float]] = {name: [] for name in self.names}
        ciw.seed(seed)

    def run(
        self, levels_of: Mapping[str, Levels], servers: Mapping[str, int], duration_s: float
    ) -> int:
        """Simulate and return how many items were executed."""
        shape = 1 / self.calibration.service_cv**2
        way = ciw.dists.Exponential(1000 / self.calibration.latency_ms)
        network = ciw.create_network(
            arrival_distributions=[
                *(self._gaps(name, levels_of, duration_s) for name in self.names),
                *(None for _ in self.names),
            ],
            service_distributions=[
                *(way for _ in self.names),
                *(
                    ciw.dists.Gamma(shape, self.calibration.service_ms[name] / 1000 / shape)
                    for name in self.names
                ),
            ],
            number_of_servers=[
                *(float("inf") for _ in self.names),
                *(servers[name] for name in self.names),
            ],
            routing=ciw.routing.NetworkRouting(
                [
                    *(ciw.routing.Direct(to=self._node(name)) for name in self.names),
                    *(ciw.routing.Leave() for _ in self.names),
                ]
            ),
        )
        simulation = ciw.Simulation(network, node_class=self._splitting())
        simulation.simulate_until_max_time(duration_s)
        return sum(self.finished.values())

    def _way(self, name: str) -> int:
        """The number of the node on the way to an operator; Ciw counts from 1."""
        return self.names.index(name) + 1

    def _node(self, name: str) -> int:
        return self._way(name) + len(self.names)

    def _gaps(self, name: str, levels_of: Mapping[str, Levels], duration_s: float) -> Any:
        """What all sources of an operator publish, or None without one."""
        sources = [
            self.topology.source.get(e.origin) for e in self.topology.edges if e.target == name
        ]
        times_us = [
            publication_times_us(
                levels_of[source.name],
                source.items_per_level / self.topology.emission_period_s,
                duration_s,
            )
            for source in sources
            if source
        ]
        if not times_us:
            return None
        gaps_s = np.diff(np.sort(np.concatenate(times_us)) / 1e6, prepend=0)
        return ciw.dists.Sequential([*gaps_s.tolist(), float("inf")])

    def _splitting(self) -> type[ciw.Node]:
        names, finished, durations_s = self.names, self.finished, self.durations_s
        edges = {
            self._node(name): [
                (self._way(edge.target), edge.items_out, edge.items_in)
                for edge in self.topology.edges
                if edge.origin == name
            ]
            for name in names
        }

        class Splitting(ciw.Node):
            """Sends on as many new individuals as the edges take of one that leaves."""

            def release(self, next_individual: Any, next_node: Any, reroute: bool = False) -> None:
                """One has been served."""
                super().release(next_individual, next_node, reroute)
                if self.id_number <= len(names):
                    return
                name = names[self.id_number - len(names) - 1]
                number = finished[name]
                finished[name] = number + 1
                if number % 10 == 0:
                    sent_s = next_individual.data_records[0].arrival_date
                    durations_s[name].append(self.now - sent_s)
                arrivals = self.simulation.nodes[0]
                for way, out, per in edges[self.id_number]:
                    for _ in range((number + 1) * out // per - number * out // per):
                        arrivals.number_of_individuals += 1
                        one = self.simulation.IndividualType(
                            arrivals.number_of_individuals, simulation=self.simulation
                        )
                        self.simulation.nodes[way].accept(one)

        return Splitting
