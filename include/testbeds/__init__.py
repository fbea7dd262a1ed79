"""The testbeds. To add one: write its package, add the line, run `make test`.

A testbed's libraries are imported only when it is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from include.testbeds.base import Testbed, TestbedConfig

if TYPE_CHECKING:
    from include.testbeds.calibrations import Parameters
    from include.testbeds.reap import Reaper


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedRegistration:
    """How a testbed is built, which parameters it has, and how long a run on it takes.

    ``real_time``: two hours of arrivals take two hours. Each run gets its own DAG run, and its
    measurements are never discarded without being asked to.
    """

    built_by: str
    """``module:name`` below this package of what takes a `TestbedConfig`."""
    parameters_in: str = "virtual.calibration"
    """Module whose ``PARAMETERS`` are its calibrations and faults."""
    real_time: bool
    reaped_by: str = ""
    """A `Reaper`, for testbeds whose hosts outlive the process that leased them."""
    measures: tuple[str, ...] = ()
    """Tables that not every testbed measures."""
    serves_by_key: bool | str = False
    """Items of a keyed operator are served by the instance that has their key; else by any.

    A name is that of the setting by operator of its calibration that makes it so.
    """
    in_cloud: bool = False
    """Its hosts are leased from a cloud; DAG tasks connect to it first."""

    def build(self, config: TestbedConfig) -> Testbed:
        testbed: Testbed = _imported(self.built_by)(config)
        return testbed

    def parameters(self) -> Parameters[Any]:
        parameters: Parameters[Any] = _imported(f"{self.parameters_in}:PARAMETERS")
        return parameters

    def reaper(self) -> Reaper:
        reaper: Reaper = _imported(self.reaped_by)
        return reaper


def _imported(name: str) -> Any:
    return resolve_name(f"{__name__}.{name}")


TESTBEDS: Mapping[str, TestbedRegistration] = {
    # The embedded default: needs no server.
    "simulated": TestbedRegistration(
        built_by="simulated.testbed:SimulatedTestbed",
        real_time=False,
        measures=("pause",),
        serves_by_key="buffer_items",
    ),
    # Amounts instead of items: for hundreds of operators, tenants and high rates.
    "flow": TestbedRegistration(
        built_by="flow.testbed:FlowTestbed",
        parameters_in="flow.calibration",
        real_time=False,
        measures=("pause",),
        serves_by_key="key_groups",
    ),
    # Real containers on Docker hosts of this machine, on the wall clock; its faults are real.
    "docker": TestbedRegistration(
        built_by="live.testbed:LiveTestbed",
        parameters_in="live.calibration",
        real_time=True,
        reaped_by="live.hosts.local.reap",
        measures=("machine",),
    ),
    # A real Apache Flink on this machine, on the wall clock; its faults are real.
    "flink": TestbedRegistration(
        built_by="flink.testbed:FlinkTestbed",
        parameters_in="flink.calibration",
        real_time=True,
        reaped_by="flink.reap",
        measures=("rescale", "machine"),
        serves_by_key=True,
    ),
    # As docker, on servers of an OpenStack cloud.
    "openstack": TestbedRegistration(
        built_by="live.hosts.openstack.hosts:build",
        parameters_in="live.hosts.openstack.calibration",
        real_time=True,
        reaped_by="live.hosts.openstack.reap",
        measures=("machine",),
        in_cloud=True,
    ),
}
