"""Records of leased hosts and instances, which one process passes to the next."""

from __future__ import annotations

from dataclasses import dataclass

from include.testbeds.fleet import Fleet, FleetHost, FleetInstance


@dataclass(slots=True, kw_only=True)
class LeasedHost(FleetHost):
    """A host by the wall clock. Times are seconds of the run; None means not (yet)."""

    ordered_s: float
    paid_until_s: float
    ended_s: float | None = None

    @property
    def ended(self) -> bool:
        return self.ended_s is not None

    @property
    def up(self) -> bool:
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class OrderedInstance(FleetInstance):
    """An instance by the wall clock, from the order to its end."""

    started_s: float
    ready_s: float | None = None
    stopped_s: float | None = None
    """When it was told to stop, or is to be told."""

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop, or is to be told."""
        return self.stopped_s is not None


@dataclass(slots=True, kw_only=True)
class LiveHost(LeasedHost):
    """A host with a Docker daemon."""

    id: str
    """The provider's; numbers are given anew in every run."""
    endpoint: str = ""
    """Where its daemon listens; empty while it boots."""
    silent_since_s: float | None = None

    @property
    def up(self) -> bool:
        return bool(self.endpoint) and self.silent_since_s is None


@dataclass(slots=True, kw_only=True)
class LiveInstance(OrderedInstance):
    """A copy of an operator in a container."""

    container: str = ""
    """Container id; empty until started."""
    pull_s: float | None = None
    first_item_s: float | None = None
    signalled_s: float | None = None
    overlaps: bool = False
    """In a migration: counts as one that serves until it is told to stop."""

    @property
    def serves(self) -> bool:
        """Whether it works as if nobody stopped it: also while a migration overlaps."""
        return self.stopped_s is None or (self.overlaps and self.signalled_s is None)


LiveFleet = Fleet[LiveHost, LiveInstance]
