"""What a live testbed leases its hosts from: Docker engines, wherever they come from.

Ids of hosts are texts of the provider's own. The testbed ``docker`` leases hosts of this machine
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
    """Hosts of one run. Only ``lease``, ``leased`` and ``give_back`` may take their time."""

    def check(self, flavor: HostFlavor, hosts: int) -> None:
        """Whether so many hosts can be leased at all, before anything is.

        Raises SpecError with every problem of its configuration, CapacityExhausted.
        """
        ...

    def origin(self) -> dict[str, Any]:
        """Plain values by which whoever tidies up finds the hosts of a run that has died."""
        ...

    def lease(self, flavor: HostFlavor) -> str:
        """Order a new, empty host; returns its id while it boots.

        Raises CapacityExhausted, or another TestbedError; then nothing was leased.
        """
        ...

    def leased(self) -> list[str]:
        """Everything the run has leased and not given back. Raises TestbedError."""
        ...

    def endpoint(self, host: str) -> str:
        """Where its engine listens; "" while it boots."""
        ...

    def boot_failed(self, host: str) -> str:
        """Why a host will not come up; "" while it still may, or has."""
        ...

    def usage(self, host: str, container: str = "") -> Usage | None:
        """Of a host that is up, or of one of its containers; None where nothing is known.

        A monitor asks for a host before it asks for containers.
        """
        ...

    def give_back(self, host: str) -> None:
        """End a host and everything on it; returns when it is gone. Safe to repeat.

        Raises TestbedError when it stays.
        """
        ...

    def close(self) -> None:
        """Let go of what this process holds; hosts stay."""
        ...
