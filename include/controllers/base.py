"""The contract every controller keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from include.model.decision import Decision
from include.model.host import HostFlavor
from include.model.observation import Observation
from include.model.topology import Topology


@dataclass(frozen=True, kw_only=True)
class Delays:
    """How long things take on a testbed, in seconds and on average, as it describes itself.

    None is not known: on real hosts whoever needs it has to watch.
    """

    host_boot_s: float | None = None
    """From the order of a host until it is up."""
    instance_start_s: float | None = None
    """Until an instance is ready on a host that is up and has its image."""
    image_pull_s: float | None = None
    """So much longer where the host does not have it."""
    drain_s: float | None = None
    """A stopped instance holds its place for so long."""
    pause_on_start_s: float | None = None
    """An operator does nothing for so long because one of its instances starts; moving the state
    of an operator that has some takes longer."""
    pause_on_stop_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a controller knows before the run starts, and nothing about its arrivals.

    A host costs ``price_per_btu``, an item that is late ``penalty_per_item``.
    ``hosts_at_start`` are leased before the first item (0: as many as the first instances
    need), and there are never more than ``max_hosts``. ``instances_at_peak`` is filled only for a
    controller that is registered as an oracle.
    """

    topology: Topology
    flavor: HostFlavor
    btu_s: float
    seed: int
    price_per_btu: float = 1.0
    penalty_per_item: float = 0.0001
    monitor_every_s: float = 15.0
    hosts_at_start: int = 0
    max_hosts: int = 1000
    instances_at_peak: Mapping[str, int] = field(default_factory=dict)
    delays: Delays = field(default_factory=Delays)


class Controller(Protocol):
    """A pure decision function with explicit memory.

    ``decide`` reads no clock, draws no random number, logs nothing and calls no testbed:
    the same memory and observation always give the same memory and decision. Memory is a
    frozen dataclass of plain values, so that a window can store it and the next one go on.
    """

    @property
    def setting(self) -> Setting:
        """What it was told before the run."""
        ...

    @property
    def interval_s(self) -> float:
        """Seconds between two decisions."""
        ...

    def problems(self) -> Iterator[str]:
        """Options that make no sense, each with what to do."""
        ...

    def initial_instances(self) -> Mapping[str, int]:
        """Instances of each operator that are deployed before the first item arrives."""
        ...

    def initial_memory(self) -> Any:
        """What it remembers before it has seen anything."""
        ...

    def decide(self, memory: Any, seen: Observation) -> tuple[Any, Decision]:
        """What to do about what was seen, and what to remember of it."""
        ...


@dataclass(frozen=True, slots=True)
class Gauge:
    """What a controller looks at of one operator, and what it acts on: less than ``low``, more
    than ``high``. None is no bound on that side."""

    value: float
    low: float | None = None
    high: float | None = None


@runtime_checkable
class Watching(Controller, Protocol):
    """A controller that shows what it looks at, in the words and the unit of ``watches``."""

    @property
    def watches(self) -> str:
        """What it looks at, with the unit."""
        ...

    def watched(self, memory: Any, seen: Observation, operator: str) -> Gauge | None:
        """What it looks at now, given what it remembers of the looks before; None where nothing
        can be said yet."""
        ...


class Group(StrEnum):
    """Where a controller comes from, as pages show it."""

    PUBLISHED = "published"
    """A paper, or what it was compared with."""
    IN_USE_TODAY = "in use today"
    """An autoscaler that people run."""
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class Registration:
    """How a controller is built, and what the platform has to know of it.

    ``build`` is a frozen dataclass whose options have defaults, or a partial of one. One that
    does not pay by the BTU it was given never looks at it: one run stands for every price book.
    """

    build: Callable[..., Controller]
    pays_by_btu: bool = True
    needs_peak: bool = False
    """An oracle: it is told how many instances the peak of the arrivals needs."""
    group: Group = Group.PUBLISHED
