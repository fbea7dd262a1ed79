"""Small worlds for tests of the fluid testbed: a chain behind one source, deployed."""

from __future__ import annotations

from typing import Any

import numpy as np

from include.model.host import HostFlavor
from include.model.topology import Topology
from include.testbeds.base import TestbedConfig
from include.testing.builders import a_topology, an_operator
from include.workloads.pattern import Levels
from tests import builders

SHARED = HostFlavor(name="shared", vcpus=4, memory_mb=64_000, cpu_shared=True)
"""Four cores, room for 64 instances of ``an_operator()``."""
QUIET = {
    "latency_ms": 0,
    "service_cv": 0.0,
    "sample_every_items": 1,
    "cpu_noise": 0,
    "host_boot_s": [0, 0],
    "instance_start_s": [5, 5],
    "image_pull_s": [0, 0],
    "drain_s": 0,
}
"""Nothing is random, every item is recorded, and an instance is ready 5 s after its start."""


def a_chain(*names: str, service_ms: float = 100.0, **changes: Any) -> Topology:
    """Operators one after the other, each item ``service_ms``."""
    return a_topology(*(an_operator(n, service_ms=service_ms, **changes) for n in names))


def a_config(topology: Topology, level: float | Levels = 5.0, **changes: Any) -> TestbedConfig:
    """An hour on SHARED hosts; ``level`` items a second from every source."""
    calibration = QUIET | dict(changes.pop("calibration", {}))
    return builders.a_config(
        topology, level, **({"flavor": SHARED} | changes), calibration=calibration
    )


def started(config: TestbedConfig, testbed: str = "flow", **placed: int) -> Any:
    """That of tests.builders, fluid unless another is named."""
    return builders.started(config, testbed, **placed)


def rows_of(table: dict[str, Any], operator: str) -> np.ndarray:
    """Which rows of a table of columns are about an operator."""
    codes, names = table["operator"]
    return np.array(names)[codes] == operator
