"""Small networks for kernel tests: one operator, arrivals given to the microsecond."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from include.model.topology import Topology
from include.testbeds.simulated import kernel
from include.testbeds.simulated.build import build_network
from include.testbeds.simulated.network import QueueingNetwork
from include.testbeds.virtual.calibration import VirtualCalibration
from include.testing.builders import a_topology, an_operator
from include.workloads.pattern import Levels

REPOSITORY = Path(__file__).parents[2]
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
        publish(network, arrivals_us)
    instance = 0
    for operator in range(len(network.names)):
        for _ in range(servers):
            instance += 1
            network.add_server(operator, instance, 1, 0)
    return network


@dataclass(frozen=True)
class Given:
    """A source that publishes at given times."""

    given_us: np.ndarray

    def times_us(self, first: int, last: int) -> np.ndarray:
        """When items ``first`` to ``last - 1`` are published; NEVER where there are no more."""
        times_us = np.full(last - first, kernel.NEVER, dtype=np.int64)
        given_us = self.given_us[first:last]
        times_us[: len(given_us)] = given_us
        return times_us


def publish(network: QueueingNetwork, *arrivals_us: np.ndarray) -> None:
    """Let the sources publish at these times."""
    network.publications = [Given(times_us) for times_us in arrivals_us]


def poisson_us(rate_per_s: float, items: int, seed: int = 5) -> np.ndarray:
    """Arrival times of a Poisson process."""
    gaps = np.random.default_rng(seed).exponential(1e6 / rate_per_s, items)
    return np.cumsum(gaps).astype(np.int64)


def column(records: np.ndarray, index: int) -> np.ndarray:
    """One column of records, in order of the items' numbers."""
    return records[np.argsort(records[:, kernel.R_NUMBER]), index]


def records_cut(
    fresh: Callable[[], QueueingNetwork], cuts_us: Iterable[int], end_us: int
) -> np.ndarray:
    """Records by operator and number, of a network stored and taken up again at every cut."""
    network, taken = fresh(), []
    for cut_us in [*sorted(cuts_us), end_us]:
        network.advance(cut_us)
        taken.append(network.take_records())
        stored, network = network.arrays(), fresh()
        network.load(stored)
    records = np.concatenate(taken)
    return records[np.lexsort((records[:, kernel.R_NUMBER], records[:, kernel.R_OPERATOR]))]


def waiting_items(network: QueueingNetwork, now_us: int) -> np.ndarray:
    """Items per operator that have arrived by now and not started."""
    return network.read(now_us, 1)[0][:, 0]


def printed(code: str, **environment: str) -> str:
    """What the code prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, cwd=REPOSITORY,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout
