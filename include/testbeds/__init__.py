"""The testbeds. To add one: write its package, add the line, run `make test`.

An entry builds a testbed from the keyword arguments of `simulated`; what a testbed needs is
imported only when it is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from include.arrivals.base import Levels
from include.model.host import HostFlavor
from include.model.topology import Topology
from include.testbeds.base import Testbed


def simulated(
    *,
    topology: Topology,
    levels: Levels,
    flavor: HostFlavor,
    btu_s: float,
    duration_s: float,
    seed: int,
    monitor_every_s: float,
    calibration: Mapping[str, Any],
    faults: Mapping[str, Any],
) -> Testbed:
    """The embedded default: needs no server."""
    from include.testbeds.simulated.calibration import Calibration, Faults
    from include.testbeds.simulated.testbed import Scene, SimulatedTestbed

    return SimulatedTestbed(
        Scene(
            topology=topology,
            calibration=Calibration.model_validate(calibration),
            faults=Faults.model_validate(faults),
            levels=levels,
            flavor=flavor,
            btu_s=btu_s,
            duration_s=duration_s,
            seed=seed,
            monitor_every_s=monitor_every_s,
        )
    )


TESTBEDS: Mapping[str, Callable[..., Testbed]] = {"simulated": simulated}
