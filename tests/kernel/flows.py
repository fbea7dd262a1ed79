"""Small worlds for tests of the fluid testbed: a chain behind one source, deployed."""

from __future__ import annotations

from typing import Any

import numpy as np

from include.model.decision import LeaseHost, StartInstance
from include.model.host import HostFlavor
from include.model.topology import Topology
from include.testbeds import TESTBEDS
from include.testbeds.base import TestbedConfig
from include.testing.builders import a_topology, an_operator, decision
from include.workloads.pattern import Levels

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
    levels = level if isinstance(level, Levels) else Levels((0.0,), (level,))
    values: dict[str, Any] = {
        "topology": topology,
        "levels_of": {source.name: levels for source in topology.sources},
        "flavor": SHARED,
        "max_hosts": 10,
        "btu_s": 600.0,
        "duration_s": 3600.0,
        "seed": 7,
        "monitor_every_s": 15.0,
        "calibration": {},
        "faults": {},
    }
    calibration = QUIET | dict(changes.pop("calibration", {}))
    return TestbedConfig(**(values | changes | {"calibration": calibration}))


def started(
    config: TestbedConfig, *, hosts: int = 1, instances: int = 1, testbed: str = "flow"
) -> Any:
    """A testbed on which ``instances`` of every operator are up, dealt out to ``hosts`` hosts."""
    made = TESTBEDS[testbed].build(config)
    leases = [LeaseHost(config.flavor.name, f"h{number}") for number in range(hosts)]
    names = [name for name in config.topology.operator_names for _ in range(instances)]
    starts = [StartInstance(name, f"h{i % hosts}") for i, name in enumerate(names)]
    made.deploy(decision(*leases, *starts))
    return made


def rows_of(table: dict[str, Any], operator: str) -> np.ndarray:
    """Which rows of a table of columns are about an operator."""
    codes, names = table["operator"]
    return np.array(names)[codes] == operator
