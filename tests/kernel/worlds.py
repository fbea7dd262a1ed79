"""Small networks for kernel tests: one operator, arrivals given to the microsecond."""

from __future__ import annotations

from typing import Any

import numpy as np

from include.arrivals.base import Levels
from include.model.topology import Topology
from include.testbeds.simulated import kernel
from include.testbeds.simulated.build import build_network
from include.testbeds.simulated.network import QueueingNetwork
from include.testbeds.virtual.calibration import VirtualCalibration
from include.testing.builders import a_topology, an_operator

HONEST = VirtualCalibration(latency_ms=0, sample_every_items=1, stalls_per_hour=0)


def a_network(
    arrivals_us: np.ndarray | None = None,
    *,
    servers: int = 1,
    topology: Topology | None = None,
    seed: int = 1,
    duration_s: float = 3600,
    level: float = 1.0,
    **changes: Any,
) -> QueueingNetwork:
    """A network whose every item is recorded; with ``arrivals_us`` the sources publish those."""
    topology = topology or a_topology(an_operator("O1", service_ms=1000.0))
    calibration = HONEST.model_copy(update=changes).complete(topology)
    levels_of = {source.name: Levels((0.0,), (level,)) for source in topology.sources}
    network = build_network(topology, calibration, levels_of, duration_s, seed)
    if arrivals_us is not None:
        network.state = network.state._replace(
            published_us=arrivals_us.astype(np.int64),
            published_first=np.array([0, arrivals_us.size], dtype=np.int64),
        )
    instance = 0
    for operator in range(len(network.names)):
        for _ in range(servers):
            instance += 1
            network.add_server(operator, instance, 1, 0)
    return network


def poisson_us(rate_per_s: float, items: int, seed: int = 5) -> np.ndarray:
    """Arrival times of a Poisson process."""
    gaps = np.random.default_rng(seed).exponential(1e6 / rate_per_s, items)
    return np.cumsum(gaps).astype(np.int64)


def column(records: np.ndarray, index: int) -> np.ndarray:
    """One column of records, in order of the items' numbers."""
    return records[np.argsort(records[:, kernel.R_NUMBER]), index]


def waiting_items(network: QueueingNetwork, now_us: int) -> np.ndarray:
    """Items per operator that have arrived by now and not started."""
    return network.read(now_us, 1)[0][:, 0]
