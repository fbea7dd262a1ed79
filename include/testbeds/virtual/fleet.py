"""Records of leased hosts and running instances of the virtual cloud."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from include.testbeds.fleet import Fleet, FleetHost, FleetInstance


@dataclass(slots=True, kw_only=True)
class VirtualHost(FleetHost):
    """A leased host. Times are microseconds since the run began; None means not (yet)."""

    ordered_us: int
    paid_until_us: int
    up_us: int
    fails_us: int | None = None
    """Time of its loss or failed boot."""
    fails_as: str = ""
    ended_us: int | None = None
    there_us: dict[str, int] = field(default_factory=dict)
    """When the image of an operator is there whose instances were ordered."""

    @property
    def ended(self) -> bool:
        return self.ended_us is not None


@dataclass(slots=True, kw_only=True)
class VirtualInstance(FleetInstance):
    """An instance until it has drained or crashed. Times as in :class:`VirtualHost`."""

    row: int
    """Row of its operator in arrays."""
    started_us: int
    ready_us: int
    crashes_us: int | None = None
    stopped_us: int | None = None
    killed_us: int | None = None
    """Time of its kill, if it serves on after its stop."""

    @property
    def stopping(self) -> bool:
        return self.stopped_us is not None

    def serves_until(self, copy: VirtualInstance) -> None:
        """Stop when the copy is ready."""
        self.successor, self.stopped_us = copy.number, copy.ready_us


VirtualFleet = Fleet[VirtualHost, VirtualInstance]


def there_for_s(
    fleet: VirtualFleet, numbers: NDArray[np.int64], now_us: int, period_us: int
) -> NDArray[np.float64]:
    """Seconds of the last period in which each instance was ready; 0 for one that stops."""
    instances = [fleet.instances[number] for number in numbers.tolist()]
    since_us = np.array(
        [instance.ready_us if instance.serves else now_us for instance in instances], float
    )
    there_s: NDArray[np.float64] = (now_us - since_us).clip(0, period_us) / 1e6
    return there_s
