"""The protocol of controllers, and how they are registered."""

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
    """Mean delays of a testbed in seconds, as it declares them.

    None is unknown; on real hosts a controller has to observe them.
    """

    host_boot_s: float | None = None
    """From the order of a host until it is up."""
    instance_start_s: float | None = None
    """Until an instance is ready on a host that is up and has its image."""
    image_pull_s: float | None = None
    """Additional time if the host does not have the image."""
    drain_s: float | None = None
    """Time that a stopped instance holds its place."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a controller knows before the run; nothing about the arrivals.

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
    def setting(self) -> Setting: ...

    @property
    def interval_s(self) -> float:
        """Seconds between two decisions."""
        ...

    def problems(self) -> Iterator[str]:
        """Options that make no sense, each with what to do; ``interval_s`` is checked for all."""
        ...

    def initial_instances(self) -> Mapping[str, int]:
        """Instances of each operator that are deployed before the first item arrives."""
        ...

    def initial_memory(self) -> Any:
        """Memory before the first observation."""
        ...

    def decide(self, memory: Any, observation: Observation) -> tuple[Any, Decision]:
        """Return the memory for the next call, and the steps to take."""
        ...


@dataclass(frozen=True, slots=True)
class Gauge:
    """Value that a controller watches for an operator; it acts below ``low`` and above ``high``.

    None is no bound.
    """

    value: float
    low: float | None = None
    high: float | None = None


@runtime_checkable
class Watching(Controller, Protocol):
    """A controller that shows the value it watches."""

    @property
    def watches(self) -> str:
        """Name of the value, with its unit."""
        ...

    def watched(self, memory: Any, observation: Observation, operator: str) -> Gauge | None:
        """The value now; None if it cannot be computed yet."""
        ...


class Group(StrEnum):
    """Where a controller comes from, as pages show it."""

    PUBLISHED = "published"
    """From a paper, or its baseline."""
    IN_USE_TODAY = "in use today"
    """An autoscaler in production use."""
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class Registration:
    """How to build a controller, and its properties.

    ``build`` is a frozen dataclass whose options have defaults, or a partial of one. Without
    ``pays_by_btu`` it ignores the BTU, so that one run stands for every price book.
    """

    build: Callable[..., Controller]
    pays_by_btu: bool = True
    needs_peak: bool = False
    """An oracle: its setting has the instances that the peak of the arrivals needs."""
    group: Group = Group.PUBLISHED
