"""Leased hosts and their instances, as one process hands them to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Host:
    """A leased host. Times are seconds of the run; None means not (yet)."""

    number: int
    id: str
    """The provider's; numbers are given anew in every run."""
    flavor: str
    ordered_s: float
    paid_until_s: float
    endpoint: str = ""
    """Where its daemon listens; empty while it boots."""
    silent_since_s: float | None = None
    releasing: bool = False
    ended_s: float | None = None
    images: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """host-1, host-2, ... in order of the leases."""
        return f"host-{self.number}"

    @property
    def up(self) -> bool:
        """Whether it answers."""
        return bool(self.endpoint) and self.silent_since_s is None


@dataclass(slots=True)
class Instance:
    """A copy of an operator, from the order to the end of its container."""

    number: int
    operator: str
    host: int
    started_s: float
    container: str = ""
    """Empty until it was started."""
    pull_s: float | None = None
    ready_s: float | None = None
    first_item_s: float | None = None
    stopped_s: float | None = None
    """When it was told to stop, or is to be told."""
    signalled_s: float | None = None
    successor: int = 0
    """Of a migration: told to stop once this one is ready."""

    @property
    def name(self) -> str:
        """For example O1-7: the seventh instance of the run, of operator O1."""
        return f"{self.operator}-{self.number}"

    @property
    def stopping(self) -> bool:
        """Whether it goes, or is to go."""
        return self.stopped_s is not None


@dataclass(slots=True)
class Fleet:
    """All hosts of the run (ended ones stay, for the lease log) and the instances alive."""

    hosts: dict[int, Host] = field(default_factory=dict)
    instances: dict[int, Instance] = field(default_factory=dict)
    instances_started: int = 0

    def leased(self) -> Iterator[Host]:
        """Hosts that are paid for now."""
        return (host for host in self.hosts.values() if host.ended_s is None)

    def host(self, name: str) -> Host | None:
        """A leased host by name."""
        return next((host for host in self.leased() if host.name == name), None)

    def instance(self, name: str) -> Instance | None:
        """An instance that runs or starts, by name."""
        return next(
            (one for one in self.instances.values() if one.name == name and not one.stopping), None
        )

    def on_host(self, number: int) -> list[Instance]:
        """Instances that hold a place on the host, stopping ones included."""
        return [one for one in self.instances.values() if one.host == number]

    def to_plain(self) -> dict[str, Any]:
        """Plain values for files and snapshots."""
        return {
            "hosts": [asdict(host) for host in self.hosts.values()],
            "instances": [asdict(one) for one in self.instances.values()],
            "instances_started": self.instances_started,
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Fleet:
        """The inverse of :meth:`to_plain`."""
        return cls(
            hosts={host["number"]: Host(**host) for host in plain["hosts"]},
            instances={one["number"]: Instance(**one) for one in plain["instances"]},
            instances_started=plain["instances_started"],
        )
