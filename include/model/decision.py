"""What a controller may ask for. A decision is data: nothing here touches a testbed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct


class StartInstance(Struct, frozen=True, gc=False):
    """Start one instance. ``host`` is a leased host or the handle of a LeaseHost before it."""

    operator: str
    host: str


@dataclass(frozen=True, slots=True)
class StopInstance:
    """Stop one instance gracefully: it takes no new items and finishes the one it has.

    With ``serves_s`` it goes on as before for that long and is then killed: the item it is at
    goes back to its queue. Until then it counts as stopping and holds its place. Only testbeds
    that follow every item do so; the others stop it gracefully at once.
    """

    instance: str
    serves_s: float = field(default=0.0, repr=False)


@dataclass(frozen=True, slots=True)
class MigrateInstance:
    """Start a copy on ``host`` and stop this instance, as StopInstance does.

    With ``overlaps`` it serves until the copy is ready, and is told to stop then; ``serves_s`` has
    to be 0. Until it has ended it counts as stopping, holds its place, and keeps its host, released
    or not. Where the copy is lost, or stopped, before it is ready, the migration is undone: the
    instance goes on, its host is not being released any more, and the next observation has both.
    Where the copy itself migrates before it is ready, its own copy replaces the instance.
    Without ``overlaps`` it is undone so where the instance still serves then: not on ``simulated``.
    """

    instance: str
    host: str
    serves_s: float = field(default=0.0, repr=False)
    overlaps: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class LeaseHost:
    """Order a host. ``handle`` names it within this decision; the testbed gives the real id."""

    flavor: str
    handle: str


@dataclass(frozen=True, slots=True)
class ProlongLease:
    """Pay for one more BTU, and for those that have begun since the last that was paid."""

    host: str


@dataclass(frozen=True, slots=True)
class ReleaseHost:
    """Take no new instance and give the host back once its last one has stopped."""

    host: str


Action = StartInstance | StopInstance | MigrateInstance | LeaseHost | ProlongLease | ReleaseHost
ACTION_NAMES: dict[type[Action], str] = {
    StartInstance: "start_instance",
    StopInstance: "stop_instance",
    MigrateInstance: "migrate_instance",
    LeaseHost: "lease_host",
    ProlongLease: "prolong_lease",
    ReleaseHost: "release_host",
}
"""As a row of ``decision`` names them; the verb comes first."""


class Reason(StrEnum):
    """Why a controller acts or waits, for programs; sentences are for people."""

    FIRST_DEPLOYMENT = "first_deployment"
    """It runs before the first item arrives."""
    INSTANCE_LOST = "instance_lost"
    """An operator has fewer instances than it was given, or none."""
    SLO_VIOLATED = "slo_violated"
    """An operator or job is later than its SLO allows."""
    SLO_AT_RISK = "slo_at_risk"
    """An operator will be later than its SLO allows, as a trend predicts."""
    SLO_MET = "slo_met"
    """A job, or every one, does as well as it asks for."""
    QUEUE_LONG = "queue_long"
    """More items wait than a threshold."""
    QUEUE_SHORT = "queue_short"
    """Fewer items wait than a threshold."""
    UTILISATION_HIGH = "utilisation_high"
    """An operator or host uses more than a threshold."""
    UTILISATION_LOW = "utilisation_low"
    """An operator or host uses less than a threshold."""
    EXPECTED_REWARD = "expected_reward"
    """Of all actions this one promises most, as was learned."""
    BEST_CONFIGURATION = "best_configuration"
    """Back to the numbers of instances that did best so far."""
    NO_CAPACITY = "no_capacity"
    """No leased host has room for an instance."""
    MAKE_ROOM = "make_room"
    """Another operator needs the place of this instance more."""
    HOST_EMPTY = "host_empty"
    """The last instance on a host has ended."""
    HOST_NEEDED = "host_needed"
    """What runs on a host can neither stop nor move."""
    NEW_HOST = "new_host"
    """What was to move waited for a host that is up now."""
    LEASE_ENDS = "lease_ends"
    """The BTU of a host ends."""
    NOTHING_TO_DO = "nothing_to_do"
    """Everything is within its limits."""
    NO_MEASUREMENT = "no_measurement"
    """Nothing was measured, or nothing since the last decision."""
    SETTLING = "settling"
    """What was done before has to show its effect first."""
    CONVERGED = "converged"
    """No action would improve anything."""


@dataclass(frozen=True, slots=True)
class Why:
    """A reason, and the sentence that says it with names and numbers."""

    reason: Reason
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    def __add__(self, more: str) -> Why:
        return Why(self.reason, self.sentence + more)


class Reasoned(Struct, frozen=True, gc=False):
    """One action, the sentence that explains it, and the reason that it gives."""

    action: Action
    because: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Decision:
    """Actions in the order they must be applied; empty means wait.

    ``because`` and ``reason`` say why; with actions the reason is that of the first.
    """

    steps: tuple[Reasoned, ...]
    because: str
    reason: Reason

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(step.action for step in self.steps)


class Outcome(Struct, frozen=True, gc=False):
    """What became of one action. ``subject`` is the real id of what was started or leased."""

    action: Action
    because: str
    accepted: bool
    subject: str
    detail: str
