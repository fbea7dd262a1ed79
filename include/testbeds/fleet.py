"""Records of leased hosts and running instances, for every testbed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar


@dataclass(slots=True, kw_only=True)
class FleetHost:
    """A leased host."""

    number: int
    flavor: str
    releasing: bool = False
    images: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """host-1, host-2, ... in order of the leases."""
        return f"host-{self.number}"

    @property
    def ended(self) -> bool:
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class FleetInstance:
    """A running copy of an operator, from its start order until it has ended."""

    number: int
    operator: str
    host: int
    successor: int = 0
    """In a migration the number of the instance that replaces this one when ready; else 0."""

    @property
    def name(self) -> str:
        """For example O1-7: the seventh instance of the run, of operator O1."""
        return f"{self.operator}-{self.number}"

    @property
    def stopping(self) -> bool:
        """Whether a stop was ordered, or will be when its successor is ready."""
        raise NotImplementedError

    @property
    def serves(self) -> bool:
        """Whether it processes items: not stopped, or until its successor is ready."""
        return not self.stopping or self.successor > 0


def _number(name: str) -> int:
    """Number at the end of a name; 0, which is never used, if there is none."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


H = TypeVar("H", bound=FleetHost)
I = TypeVar("I", bound=FleetInstance)  # noqa: E741


@dataclass(slots=True)
class Fleet(Generic[H, I]):
    """Hosts of the run (ended ones until their leases are taken) and its running instances."""

    hosts: dict[int, H] = field(default_factory=dict)
    instances: dict[int, I] = field(default_factory=dict)
    hosts_leased: int = 0
    instances_started: int = 0

    def leased(self) -> list[H]:
        return [host for host in self.hosts.values() if not host.ended]

    def host(self, name: str) -> H | None:
        host = self.hosts.get(_number(name))
        return host if host and host.name == name and not host.ended else None

    def instance(self, name: str) -> I | None:
        """An instance that runs or starts, by name."""
        instance = self.instances.get(_number(name))
        return instance if instance and instance.name == name and not instance.stopping else None

    def on_host(self, number: int) -> list[I]:
        """Instances that hold a place on the host, stopping ones included."""
        return [instance for instance in self.instances.values() if instance.host == number]

    def serving(self, operator: str = "") -> list[I]:
        """Instances that serve, of one operator or of all."""
        return [
            instance
            for instance in self.instances.values()
            if instance.serves and operator in ("", instance.operator)
        ]

    def replaced_by(self, number: int) -> list[I]:
        """Instances that serve until instance ``number`` is ready."""
        return [instance for instance in self.instances.values() if instance.successor == number]
