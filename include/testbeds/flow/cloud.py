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
from include.testbeds.base import Scene
from include.testbeds.flow.calibration import Calibration, Faults
from include.testbeds.simulated.draws import Draws
from include.testbeds.simulated.fleet import Fleet, Host, Instance


def us(time_s: float) -> int:
    """Seconds as whole microseconds."""
    return round(time_s * 1e6)


@dataclass(slots=True)
class Cloud:
    """Hosts and instances, and who replaces whom. Times are microseconds of the run."""

    scene: Scene
    calibration: Calibration
    faults: Faults
    draws: Draws
    operators: dict[str, int]
    """Rows of the operators, by name."""
    fleet: Fleet = field(default_factory=Fleet)
    replaces: dict[int, int] = field(default_factory=dict)
    """Instances that start to replace another one: new number to old."""
    pauses_us: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(operator, from, until, instance whose coming or going is the reason)."""
    activities: list[tuple[float, str, str, str, str]] = field(default_factory=list)
    events: list[tuple[float, str, str, str]] = field(default_factory=list)

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out the first decision; hosts and instances are up before time starts."""
        outcomes = self.apply(decision, 0)
        for host in self.fleet.leased():
            host.up_us = 0
            host.fails_us, host.fails_as = self._loss_us(host.number, 0), "host_lost"
        for one in self.fleet.instances.values():
            one.ready_us = 0
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
        for host in [host for host in self.fleet.leased() if host.releasing]:
            if not self.fleet.on_host(host.number):
                host.ended_us = ended_us.get(host.number, now_us)
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
                subject = self._lease(action, now_us)
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
                subject = self._prolong(self.fleet.host(action.host), now_us)
            case ReleaseHost():
                subject = self._release(self.fleet.host(action.host), now_us)
        return Outcome(action, step.because, bool(subject), subject, "" if subject else detail)

    def _lease(self, action: LeaseHost, now_us: int) -> str:
        scene, draws = self.scene, self.draws
        if sum(1 for _ in self.fleet.leased()) >= scene.max_hosts:
            return ""
        number = len(self.fleet.hosts) + 1
        boot_us = draws.between_us("boot", str(number), self.calibration.host_boot_s)
        if draws.chance("boot_delay", str(number), self.faults.host_boot_delay):
            late_us = draws.between_us("boot_late", str(number), self.faults.host_boot_delay_s)
            boot_us += late_us
            detail = f"{late_us / 1e6:.0f} s later than usual"
            self.events.append((now_us / 1e6, "host_boot_delay", f"host-{number}", detail))
        host = Host(
            number=number,
            flavor=action.flavor,
            ordered_us=now_us,
            paid_until_us=now_us + us(scene.btu_s),
            up_us=now_us + boot_us,
        )
        if draws.chance("boot_failure", str(number), self.faults.host_boot_failure):
            host.fails_us, host.fails_as = host.up_us, "host_boot_failure"
        else:
            host.fails_us, host.fails_as = self._loss_us(number, host.up_us), "host_lost"
        self.fleet.hosts[number] = host
        self._log(now_us, "host_leased", host=host.name)
        return host.name

    def _loss_us(self, number: int, up_us: int) -> int | None:
        rate = self.faults.host_losses_per_hour
        after_us = self.draws.after_us("host_loss", str(number), rate)
        return None if after_us is None else up_us + after_us

    def _start(self, operator: str, host: Host | None, now_us: int) -> str:
        if host is None or operator not in self.operators:
            return ""
        one = self._new(operator, host, now_us)
        self._pause(one, one.ready_us, self._rescale_s(operator))
        self._log(now_us, "upscaling", operator, one.name, host.name)
        return one.name

    def _migrate(self, old: Instance | None, host: Host | None, now_us: int) -> str:
        """The old instance serves until the new one is ready; only state makes a gap."""
        if old is None or host is None:
            return ""
        one = self._new(old.operator_name, host, now_us)
        operator = self.scene.topology.operator[old.operator_name]
        if operator.stateful:
            pause_s = self.calibration.migration_pause_s
            pause_s += operator.state_mb / self.calibration.state_mb_per_s
            self._pause(one, one.ready_us, pause_s)
        old.stopped_us = one.ready_us
        self.replaces[one.number] = old.number
        self._log(now_us, "migration", one.operator_name, one.name, host.name)
        return one.name

    def _new(self, operator: str, host: Host, now_us: int) -> Instance:
        draws = self.draws
        self.fleet.instances_started += 1
        number = self.fleet.instances_started
        ready_us = max(now_us, host.up_us)
        ready_us += draws.between_us("start", str(number), self.calibration.instance_start_s)
        if operator not in host.images:
            ready_us += draws.between_us("pull", str(number), self.calibration.image_pull_s)
            host.images.append(operator)
        after_us = draws.after_us("crash", str(number), self.faults.instance_crashes_per_hour)
        one = Instance(
            number=number,
            operator=self.operators[operator],
            operator_name=operator,
            host=host.number,
            started_us=now_us,
            ready_us=ready_us,
            crashes_us=None if after_us is None else ready_us + after_us,
        )
        self.fleet.instances[number] = one
        return one

    def _stop(self, one: Instance | None, now_us: int) -> str:
        if one is None:
            return ""
        self._cancel(one, now_us)
        one.stopped_us = now_us
        self._pause(one, now_us, self._rescale_s(one.operator_name))
        self._log(now_us, "downscaling", one.operator_name, one.name, f"host-{one.host}")
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

    def _prolong(self, host: Host | None, now_us: int) -> str:
        if host is None:
            return ""
        host.paid_until_us += us(self.scene.btu_s)
        self._log(now_us, "host_prolonged", host=host.name)
        return host.name

    def _release(self, host: Host | None, now_us: int) -> str:
        if host is None:
            return ""
        host.releasing = True
        self._log(now_us, "host_released", host=host.name)
        if not self.fleet.on_host(host.number):
            host.ended_us = now_us
        return host.name

    def _log(
        self, now_us: int, activity: str, operator: str = "", instance: str = "", host: str = ""
    ) -> None:
        self.activities.append((now_us / 1e6, activity, operator, instance, host))
