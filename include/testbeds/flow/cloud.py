"""What actions do to hosts and instances: leases, starts, moves and faults; no queueing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from include.model.decision import (
    Action,
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
from include.testbeds.flow.calibration import Calibration, Faults
from include.testbeds.simulated import cloud
from include.testbeds.simulated.cloud import us
from include.testbeds.simulated.fleet import Fleet, Host, Instance


@dataclass(slots=True)
class Cloud(cloud.Cloud):
    """Hosts and instances, and who replaces whom. Times are microseconds of the run."""

    calibration: Calibration
    faults: Faults
    replaces: dict[int, int] = field(default_factory=dict)
    """Instances that start to replace another one: new number to old."""
    pauses_us: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(operator, from, until, instance whose coming or going is the reason)."""

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out the first decision; hosts and instances are up before time starts."""
        outcomes = self.apply(decision, 0)
        self.begin()
        self.pauses_us = []
        return outcomes

    def apply(self, decision: Decision, now_us: int) -> tuple[Outcome, ...]:
        """Carry out each action in order; what cannot be done is refused."""
        self.settle(now_us)
        handles: dict[str, str] = {}
        return tuple(self._carry_out(step, handles, now_us) for step in decision.steps)

    def settle(self, now_us: int) -> None:
        """Take away instances that have drained, and hosts whose last instance has."""
        ended_us: dict[int, int] = {}
        for one in [one for one in self.fleet.instances.values() if one.stopped_us is not None]:
            end_us = (one.stopped_us or 0) + us(self.calibration.drain_s)
            if end_us <= now_us:
                del self.fleet.instances[one.number]
                ended_us[one.host] = max(end_us, ended_us.get(one.host, 0))
        self.end_empty(ended_us, now_us)
        self.replaces = {
            new: old for new, old in self.replaces.items() if self._starts(new, now_us)
        }
        self.pauses_us = [pause for pause in self.pauses_us if pause[2] > now_us]

    def fail(self, who: Host | Instance, now_us: int) -> None:
        """A host is lost, a boot fails, or an instance crashes. Items stay in their queues."""
        if isinstance(who, Instance):
            self._lose(who, now_us)
            self.events.append((now_us / 1e6, "instance_crash", who.name, "its items wait"))
            self.settle(now_us)
            return
        gone = self.fleet.on_host(who.number)
        for one in gone:
            self._lose(one, now_us)
        who.ended_us = now_us
        detail = f"{len(gone)} instances lost, their items wait"
        self.events.append((now_us / 1e6, who.fails_as, who.name, detail))

    def to_plain(self) -> dict[str, Any]:
        """Plain values for a snapshot (taken when no measured rows are left)."""
        return {
            "fleet": self.fleet.to_plain(),
            "replaces": list(self.replaces.items()),
            "pauses_us": self.pauses_us,
        }

    def load_plain(self, plain: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.fleet = Fleet.from_plain(plain["fleet"])
        self.replaces = dict(plain["replaces"])
        self.pauses_us = [tuple(pause) for pause in plain["pauses_us"]]

    def _carry_out(self, step: Reasoned, handles: dict[str, str], now_us: int) -> Outcome:
        action: Action = step.action
        detail = f"the testbed does not know what {action} is about"
        match action:
            case LeaseHost():
                subject = self._lease_if_free(action, now_us)
                detail = f"all {self.scene.max_hosts} hosts are leased"
                handles[action.handle] = subject
            case StartInstance():
                host = self.fleet.host(handles.get(action.host, action.host))
                subject = self._start(action.operator, host, now_us)
            case StopInstance():
                subject = self._stop(self.fleet.instance(action.instance), now_us)
            case MigrateInstance():
                host = self.fleet.host(handles.get(action.host, action.host))
                subject = self._migrate(self.fleet.instance(action.instance), host, now_us)
            case ProlongLease():
                subject = self.prolong(self.fleet.host(action.host), now_us)
            case ReleaseHost():
                subject = self.release(self.fleet.host(action.host), now_us)
        return Outcome(action, step.because, bool(subject), subject, "" if subject else detail)

    def _lease_if_free(self, action: LeaseHost, now_us: int) -> str:
        leased = sum(1 for _ in self.fleet.leased())
        return self.lease(action, now_us) if leased < self.scene.max_hosts else ""

    def _start(self, operator: str, host: Host | None, now_us: int) -> str:
        if host is None or operator not in self.operators:
            return ""
        one = self.new_instance(operator, host, now_us)
        self._pause(one, one.ready_us, self._rescale_s(operator))
        self.log(now_us, "upscaling", operator, one.name, host.name)
        return one.name

    def _migrate(self, old: Instance | None, host: Host | None, now_us: int) -> str:
        """The old instance serves until the new one is ready; only state makes a gap."""
        if old is None or host is None:
            return ""
        one = self.new_instance(old.operator_name, host, now_us)
        operator = self.scene.topology.operator[old.operator_name]
        if operator.stateful:
            pause_s = self.calibration.migration_pause_s
            pause_s += operator.state_mb / self.calibration.state_mb_per_s
            self._pause(one, one.ready_us, pause_s)
        old.stopped_us = one.ready_us
        self.replaces[one.number] = old.number
        self.log(now_us, "migration", one.operator_name, one.name, host.name)
        return one.name

    def _stop(self, one: Instance | None, now_us: int) -> str:
        if one is None:
            return ""
        self._cancel(one, now_us)
        one.stopped_us = now_us
        self._pause(one, now_us, self._rescale_s(one.operator_name))
        self.log(now_us, "downscaling", one.operator_name, one.name, f"host-{one.host}")
        return one.name

    def _rescale_s(self, operator: str) -> float:
        op = self.scene.topology.operator[operator]
        moved_s = op.state_mb / self.calibration.state_mb_per_s if op.stateful else 0.0
        return self.calibration.rescale_pause_s + moved_s

    def _pause(self, one: Instance, from_us: int, length_s: float) -> None:
        if length_s > 0:
            until_us = from_us + us(length_s)
            self.pauses_us.append((one.operator, from_us, until_us, one.number))

    def _starts(self, number: int, now_us: int) -> bool:
        one = self.fleet.instances.get(number)
        return one is not None and one.ready_us > now_us

    def _cancel(self, one: Instance, now_us: int) -> None:
        """What was to come with an instance that never gets ready: its predecessor stays."""
        if self._starts(one.number, now_us):
            old = self.fleet.instances.get(self.replaces.pop(one.number, 0))
            if old is not None and old.stopped_us is not None and old.stopped_us > now_us:
                old.stopped_us = None
            self.pauses_us = [pause for pause in self.pauses_us if pause[3] != one.number]

    def _lose(self, one: Instance, now_us: int) -> None:
        self._cancel(one, now_us)
        self.fleet.instances.pop(one.number, None)
