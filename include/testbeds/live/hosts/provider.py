"""Protocol of host providers, which lease Docker engines to a live testbed.

Host ids are strings of the provider. The testbed ``docker`` leases hosts of this machine
(``local``), ``openstack`` servers of a cloud.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from include.model.host import HostFlavor


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time so far, and the memory in use without the file cache."""

    cpu_s: float
    memory_mb: float


class HostProvider(Protocol):
    """Hosts of a run. Only ``lease``, ``leased`` and ``give_back`` may be slow."""

    def check(self, flavor: HostFlavor, hosts: int) -> None:
        """Check that ``hosts`` hosts can be leased.

        Raises SpecError with every problem of the configuration, or CapacityExhausted.
        """
        ...

    def origin(self) -> dict[str, Any]:
        """Plain values by which a reaper finds the hosts of a dead run."""
        ...

    def lease(self, flavor: HostFlavor) -> str:
        """Order a new, empty host; returns its id while it boots.

        Raises CapacityExhausted or another TestbedError, without leasing anything.
        """
        ...

    def leased(self) -> list[str]:
        """Ids of the run's hosts that were not given back. Raises TestbedError."""
        ...

    def endpoint(self, host: str) -> str:
        """Address of its engine; "" while it boots."""
        ...

    def boot_failed(self, host: str) -> str:
        """Why the host will not come up; "" if it is up or may still come up."""
        ...

    def usage(self, host: str, container: str = "") -> Usage | None:
        """Usage of a host that is up, or of one of its containers; None if unknown.

        Call it for a host before its containers.
        """
        ...

    def give_back(self, host: str) -> None:
        """End a host and everything on it; returns when it is gone. Safe to repeat.

        Raises TestbedError if it remains.
        """
        ...

    def close(self) -> None:
        """Release this process's resources; hosts stay."""
        ...
