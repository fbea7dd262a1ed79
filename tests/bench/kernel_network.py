"""The kernel alone, in the shape of its peers: no hosts, monitoring or control."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from include.model.topology import Topology
from include.testbeds.simulated import kernel
from include.testbeds.simulated.build import build_network
from include.testbeds.virtual.calibration import VirtualCalibration
from include.workloads.pattern import Levels

STEP_US = 15_000_000
"""A monitoring period: how far the kernel moves at a time."""


class KernelNetwork:
    """Counts executions; ``records`` keeps sampled items as :class:`kernel.NetworkState` does."""

    def __init__(self, topology: Topology, calibration: VirtualCalibration, seed: int) -> None:
        self.topology, self.calibration, self.seed = topology, calibration, seed
        self.records = np.zeros((0, kernel.RECORD_COLUMNS), dtype=np.int64)

    @property
    def recorded(self) -> list[tuple[str, int, int, int, int]]:
        """That of :class:`HeapNetwork`, in another order."""
        columns = [kernel.R_OPERATOR, kernel.R_NUMBER, kernel.R_DONE_US, kernel.R_DURATION_US]
        names = self.topology.flow_order
        rows = self.records[:, [*columns, kernel.R_WAIT_US]].tolist()
        return [(names[o], *rest) for o, *rest in rows]

    def run(
        self, levels_of: Mapping[str, Levels], servers: Mapping[str, int], duration_s: float
    ) -> int:
        """Simulate and return how many items were executed."""
        network = build_network(self.topology, self.calibration, levels_of, duration_s, self.seed)
        for operator, name in enumerate(network.names):
            for instance in range(servers[name]):
                network.add_server(operator, instance, 1, 0)
        end_us = round(duration_s * 1e6)
        for until_us in [*range(STEP_US, end_us, STEP_US), end_us]:
            network.advance(until_us)
        self.records = network.take_records()
        return int(network.state.nodes[: len(network.names), kernel.COMPLETED].sum())
