"""Leased hosts and running instances of the simulated cloud: plain records, no queueing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any


@dataclass(slots=True)
class Host:
    """A leased host. Times are microseconds since the run began; None means not (yet)."""

    number: int
    flavor: str
    ordered_us: int
    paid_until_us: int
    up_us: int
    fails_us: int | None = None
    """When it is lost or, for a failed boot, when that shows."""
    fails_as: str = ""
    releasing: bool = False
    ended_us: int | None = None
    images: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """host-1, host-2, ... in order of the leases."""
        return f"host-{self.number}"


@dataclass(slots=True)
class Instance:
    """A running copy of an operator, from its start until it has drained or crashed."""

    number: int
    operator: int
    operator_name: str
    host: int
    started_us: int
    ready_us: int
    crashes_us: int | None = None
    stopped_us: int | None = None

    @property
    def name(self) -> str:
        """For example O1-7: the seventh instance of the run, of operator O1."""
        return f"{self.operator_name}-{self.number}"


@dataclass(slots=True)
class Fleet:
    """All hosts of the run (ended ones stay, for the lease log) and the instances alive."""

    hosts: dict[int, Host] = field(default_factory=dict)
    instances: dict[int, Instance] = field(default_factory=dict)
    instances_started: int = 0
    _open: list[Host] = field(default_factory=list)
    _looked_at: int = 0

    def leased(self) -> Iterator[Host]:
        """Hosts that are paid for now. Those that have ended are looked at no more."""
        self._open += islice(self.hosts.values(), self._looked_at, None)
        self._looked_at = len(self.hosts)
        self._open = [host for host in self._open if host.ended_us is None]
        return iter(self._open)

    def host(self, name: str) -> Host | None:
        """A leased host by name."""
        return next((host for host in self.leased() if host.name == name), None)

    def instance(self, name: str) -> Instance | None:
        """An instance that runs or starts, by name."""
        return next(
            (one for one in self.instances.values() if one.name == name and one.stopped_us is None),
            None,
        )

    def on_host(self, number: int) -> list[Instance]:
        """Instances that hold a place on the host, stopping ones included."""
        return [one for one in self.instances.values() if one.host == number]

    def next_failure(self) -> tuple[int, Host | Instance] | None:
        """When the next host fails or instance crashes, and which; hosts first on a tie."""
        due: list[tuple[int, Host | Instance]] = [
            *((host.fails_us, host) for host in self.leased() if host.fails_us is not None),
            *((i.crashes_us, i) for i in self.instances.values() if i.crashes_us is not None),
        ]
        return min(due, key=lambda one: one[0], default=None)

    def to_plain(self) -> dict[str, Any]:
        """Plain values for a snapshot."""
        return {
            "hosts": [asdict(host) for host in self.hosts.values()],
            "instances": [asdict(one) for one in self.instances.values()],
            "instances_started": self.instances_started,
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Fleet:
        """The fleet of a snapshot."""
        return cls(
            hosts={host["number"]: Host(**host) for host in plain["hosts"]},
            instances={one["number"]: Instance(**one) for one in plain["instances"]},
            instances_started=plain["instances_started"],
        )
