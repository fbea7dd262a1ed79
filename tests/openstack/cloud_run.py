"""A run on the testbed `openstack`, for tests: two generic operators in a row on leased servers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from include.testbeds import TESTBEDS
from include.testbeds.base import TestbedConfig
from include.testing.builders import a_topology, an_operator
from include.workloads.pattern import Levels
from tests.live.live_run import BACK, FRONT, MONITOR_S, LiveRun
from tests.openstack.plane import FLAVOR


class CloudRun(LiveRun):
    """As on local hosts, on servers."""

    def again(self) -> Any:
        return TESTBEDS["openstack"].build(self.config)


def config_of(run: str, **calibration: Any) -> TestbedConfig:
    """A run of two small operators on one flavor, longer than a test needs."""
    operators = (
        an_operator(name, service_ms=5.0, cpu_cores=0.1, memory_mb=64.0) for name in (FRONT, BACK)
    )
    return TestbedConfig(
        topology=a_topology(*operators),
        levels_of={"S1": Levels((0.0,), (10.0,))},
        flavor=FLAVOR,
        max_hosts=3,
        btu_s=60.0,
        duration_s=3600.0,
        seed=1,
        monitor_every_s=MONITOR_S,
        calibration=calibration,
        faults={},
        run=run,
        experiment="tests",
    )


@contextmanager
def cloud_run(**calibration: Any) -> Iterator[CloudRun]:
    """A run of its own, given back afterwards."""
    config = config_of(f"test-{uuid.uuid4().hex[:8]}", **calibration)
    testbed = TESTBEDS["openstack"].build(config)
    try:
        yield CloudRun(config, testbed)
    finally:
        testbed.give_back()
