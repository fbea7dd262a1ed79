"""Carries out decisions on a testbed, which implements the single actions."""

from __future__ import annotations

from typing import Protocol

from include.model.decision import (
    Decision,
    LeaseHost,
    MigrateInstance,
    Outcome,
    ProlongLease,
    Reasoned,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.errors import TestbedError
from include.testbeds.fleet import Fleet, H, I


class Actuator(Protocol[H, I]):
    """Performs single actions on existing hosts and instances."""

    @property
    def fleet(self) -> Fleet[H, I]:
        """Hosts and instances as they are now."""
        ...

    @property
    def operator_names(self) -> tuple[str, ...]:
        """Operators that have instances of their own."""
        ...

    def lease(self, action: LeaseHost) -> H:
        """Order a host. Raises TestbedError if none is available."""
        ...

    def start(self, operator: str, host: H) -> I: ...

    def stop(self, instance: I, serves_s: float) -> None:
        """Stop an instance gracefully or, where supported, kill it after ``serves_s``."""
        ...

    def migrate(self, instance: I, host: H, action: MigrateInstance) -> I:
        """Start a copy on ``host``, stop the instance as specified; returns the copy."""
        ...

    def prolong(self, host: H) -> None:
        """Pay for one more BTU."""
        ...

    def release(self, host: H) -> None:
        """Give a host back once it is empty."""
        ...


def carry_out(decision: Decision, actuator: Actuator[H, I]) -> tuple[Outcome, ...]:
    """Carry out each action in order; unknown hosts and instances are refused with a reason."""
    handles: dict[str, str] = {}
    outcomes = []
    for step in decision.steps:
        subject, detail = "", f"the testbed does not know what {step.action} is about"
        try:
            subject = _subject(step, handles, actuator)
        except TestbedError as error:
            detail = str(error)
        reason = "" if subject else detail
        outcomes.append(Outcome(step.action, step.because, bool(subject), subject, reason))
    return tuple(outcomes)


def _subject(step: Reasoned, handles: dict[str, str], actuator: Actuator[H, I]) -> str:
    """Carry out an action. Returns the name of its host or instance; "" if that does not exist."""
    action, fleet = step.action, actuator.fleet
    match action:
        case LeaseHost():
            handles[action.handle] = name = actuator.lease(action).name
            return name
        case StartInstance():
            host = fleet.host(handles.get(action.host, action.host))
            has_operator = host and action.operator in actuator.operator_names
            return actuator.start(action.operator, host).name if host and has_operator else ""
        case MigrateInstance():
            host = fleet.host(handles.get(action.host, action.host))
            instance = fleet.instance(action.instance)
            return actuator.migrate(instance, host, action).name if instance and host else ""
        case StopInstance():
            if instance := fleet.instance(action.instance):
                actuator.stop(instance, action.serves_s)
            return instance.name if instance else ""
        case ProlongLease() | ReleaseHost():
            if host := fleet.host(action.host):
                (actuator.prolong if isinstance(action, ProlongLease) else actuator.release)(host)
            return host.name if host else ""
