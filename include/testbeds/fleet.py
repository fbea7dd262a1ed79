"""What every testbed knows of leased hosts and running instances, as plain records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar


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
        """Whether its lease is over."""
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class FleetInstance:
    """A running copy of an operator, from the order to start it until it has ended."""

    number: int
    operator: str
    host: int
    successor: int = 0
    """Of a migration: told to stop once this one is ready."""

    @property
    def name(self) -> str:
        """For example O1-7: the seventh instance of the run, of operator O1."""
        return f"{self.operator}-{self.number}"

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop, or is to be told."""
        raise NotImplementedError

    @property
    def serves(self) -> bool:
        """Whether it works as if nobody stopped it: also while a migration overlaps."""
        raise NotImplementedError


def _number(name: str) -> int:
    """What a name ends with; 0, which nobody has, where that is no number."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _plain(some: Iterable[FleetHost | FleetInstance]) -> list[dict[str, Any]]:
    """The fields of each, which are plain; ``asdict`` takes ten times as long to copy them."""
    each, names = list(some), list[str]()
    if each:
        names = [column.name for column in fields(each[0])]
    return [{name: getattr(item, name) for name in names} for item in each]


H = TypeVar("H", bound=FleetHost)
I = TypeVar("I", bound=FleetInstance)  # noqa: E741


@dataclass(slots=True)
class Fleet(Generic[H, I]):
    """Hosts of the run (ended ones stay until the lease log was taken) and the instances alive."""

    hosts: dict[int, H] = field(default_factory=dict)
    instances: dict[int, I] = field(default_factory=dict)
    hosts_leased: int = 0
    instances_started: int = 0

    def leased(self) -> Iterator[H]:
        """Hosts that are paid for now."""
        return iter([host for host in self.hosts.values() if not host.ended])

    def host(self, name: str) -> H | None:
        """A leased host by name."""
        host = self.hosts.get(_number(name))
        return host if host and host.name == name and not host.ended else None

    def instance(self, name: str) -> I | None:
        """An instance that runs or starts, by name."""
        instance = self.instances.get(_number(name))
        return instance if instance and instance.name == name and not instance.stopping else None

    def on_host(self, number: int) -> list[I]:
        """Instances that hold a place on the host, stopping ones included."""
        return [instance for instance in self.instances.values() if instance.host == number]

    def replaced_by(self, number: int) -> list[I]:
        """Instances that serve until this one is ready."""
        return [
            instance
            for instance in self.instances.values()
            if instance.serves and instance.successor == number
        ]

    def to_plain(self) -> dict[str, Any]:
        """Plain values for files and snapshots."""
        return {
            "hosts": [host | {"images": [*host["images"]]} for host in _plain(self.hosts.values())],
            "instances": _plain(self.instances.values()),
            "hosts_leased": self.hosts_leased,
            "instances_started": self.instances_started,
        }

    def load_plain(self, plain: dict[str, Any], host: type[H], instance: type[I]) -> None:
        """The inverse of :meth:`to_plain`, into a fleet that is empty."""
        self.hosts.update({row["number"]: host(**row) for row in plain["hosts"]})
        self.instances.update({row["number"]: instance(**row) for row in plain["instances"]})
        self.hosts_leased = plain["hosts_leased"]
        self.instances_started = plain["instances_started"]
