"""The testbeds. To add one: write its package, add the line, run `make test`.

A testbed's libraries are imported only when it is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from include.testbeds.base import Testbed, TestbedConfig

if TYPE_CHECKING:
    from include.testbeds.calibrations import Parameters
    from include.testbeds.reap import Reaper


def simulated_parameters() -> Parameters[Any]:
    """Calibrations of the embedded default, and its faults."""
    from include.testbeds.virtual.calibration import PARAMETERS

    return PARAMETERS


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedRegistration:
    """How a testbed is built, which parameters it has, and how long a run on it takes.

    ``real_time``: two hours of arrivals take two hours. Each run gets its own DAG run, and its
    measurements are never discarded without being asked to.
    """

    build: Callable[[TestbedConfig], Testbed]
    parameters: Callable[[], Parameters[Any]] = simulated_parameters
    real_time: bool
    reaper: Callable[[], Reaper] | None = None
    """For testbeds whose hosts outlive the process that leased them."""
    measures: tuple[str, ...] = ()
    """Tables that most testbeds do not measure: of ``rows.MEASURED_BY_SOME``."""
    serves_by_key: bool | str = False
    """Items of a keyed operator are served by the instance that has their key; else by any.

    A name is that of the setting by operator of its calibration that makes it so.
    """
    in_cloud: bool = False
    """Its hosts are leased from a cloud; DAG tasks connect to it first."""


def simulated(config: TestbedConfig) -> Testbed:
    """The embedded default: needs no server."""
    from include.testbeds.simulated.testbed import SimulatedTestbed

    return SimulatedTestbed(config)


def flow(config: TestbedConfig) -> Testbed:
    """Amounts instead of items: for hundreds of operators, tenants and high rates."""
    from include.testbeds.flow.testbed import FlowTestbed

    return FlowTestbed(config)


def flow_parameters() -> Parameters[Any]:
    """Those of the embedded default, and more."""
    from include.testbeds.flow.calibration import PARAMETERS

    return PARAMETERS


def docker(config: TestbedConfig) -> Testbed:
    """Real containers on Docker hosts of this machine, on the wall clock."""
    from include.testbeds.live.testbed import LiveTestbed

    return LiveTestbed(config)


def docker_parameters() -> Parameters[Any]:
    """Pace, containers and deadlines; its faults are real."""
    from include.testbeds.live.calibration import PARAMETERS

    return PARAMETERS


def docker_reaper() -> Reaper:
    """What dead runs have left on this machine."""
    from include.testbeds.live.hosts.local import reap

    return reap


def openstack(config: TestbedConfig) -> Testbed:
    """The same on servers of an OpenStack cloud."""
    from include.testbeds.live.hosts.openstack.hosts import build

    return build(config)


def openstack_parameters() -> Parameters[Any]:
    """Those of ``docker``, and the names of the cloud."""
    from include.testbeds.live.hosts.openstack.calibration import PARAMETERS

    return PARAMETERS


def openstack_reaper() -> Reaper:
    """What dead runs have left in clouds."""
    from include.testbeds.live.hosts.openstack import reap

    return reap


def flink(config: TestbedConfig) -> Testbed:
    """A real Apache Flink on this machine, on the wall clock."""
    from include.testbeds.flink.testbed import FlinkTestbed

    return FlinkTestbed(config)


def flink_parameters() -> Parameters[Any]:
    """Pace, queues, checkpoints and deadlines; its faults are real."""
    from include.testbeds.flink.calibration import PARAMETERS

    return PARAMETERS


def flink_reaper() -> Reaper:
    """What dead runs have left on this machine."""
    from include.testbeds.flink import reap

    return reap


TESTBEDS: Mapping[str, TestbedRegistration] = {
    "simulated": TestbedRegistration(
        build=simulated, real_time=False, serves_by_key="buffer_items"
    ),
    "flow": TestbedRegistration(
        build=flow, parameters=flow_parameters, real_time=False, serves_by_key="key_groups"
    ),
    "docker": TestbedRegistration(
        build=docker, parameters=docker_parameters, real_time=True, reaper=docker_reaper
    ),
    "flink": TestbedRegistration(
        build=flink,
        parameters=flink_parameters,
        real_time=True,
        reaper=flink_reaper,
        measures=("rescale", "machine"),
        serves_by_key=True,
    ),
    "openstack": TestbedRegistration(
        build=openstack,
        parameters=openstack_parameters,
        real_time=True,
        reaper=openstack_reaper,
        in_cloud=True,
    ),
}
