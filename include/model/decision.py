"""What a controller may ask for. A decision is data: nothing here touches a testbed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartInstance:
    """Start one instance. ``host`` is a leased host or the handle of a LeaseHost before it."""

    operator: str
    host: str


@dataclass(frozen=True, slots=True)
class StopInstance:
    """Stop one instance gracefully: it takes no new items and finishes the one it has."""

    instance: str


@dataclass(frozen=True, slots=True)
class MigrateInstance:
    """Start a copy on ``host`` and stop this instance."""

    instance: str
    host: str


@dataclass(frozen=True, slots=True)
class LeaseHost:
    """Order a host. ``handle`` names it within this decision; the testbed gives the real id."""

    flavor: str
    handle: str


@dataclass(frozen=True, slots=True)
class ProlongLease:
    """Pay for one more BTU."""

    host: str


@dataclass(frozen=True, slots=True)
class ReleaseHost:
    """Take no new instance and give the host back once its last one has stopped."""

    host: str


Action = StartInstance | StopInstance | MigrateInstance | LeaseHost | ProlongLease | ReleaseHost


@dataclass(frozen=True, slots=True)
class Reasoned:
    """One action and the sentence that explains it."""

    action: Action
    because: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Actions in the order they must be applied; empty means wait, and ``because`` says why."""

    steps: tuple[Reasoned, ...]
    because: str

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions without their reasons."""
        return tuple(step.action for step in self.steps)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one action. ``subject`` is the real id of what was started or leased."""

    action: Action
    because: str
    accepted: bool
    subject: str
    detail: str
