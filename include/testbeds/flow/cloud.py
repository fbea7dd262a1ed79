"""What actions do to hosts and instances: leases, starts, moves and faults; no queueing."""

from __future__ import annotations

from dataclasses import dataclass, field

from include.model.decision import LeaseHost
from include.model.errors import CapacityExhausted
from include.testbeds.flow.calibration import FlowCalibration, FlowFaults
from include.testbeds.virtual.cloud import NOBODY, VirtualCloud, us
from include.testbeds.virtual.fleet import VirtualHost, VirtualInstance


@dataclass(slots=True)
class FlowCloud(VirtualCloud):
    """Hosts and instances, and who replaces whom. Times are microseconds of the run."""

    STORED = (*VirtualCloud.STORED, "replaces", "hot_us", "restarts")

    calibration: FlowCalibration
    faults: FlowFaults
    replaces: dict[int, int] = field(default_factory=dict)
    """Instances that start to replace another one: new number to old."""
    hot_us: list[tuple[int, int, float]] = field(default_factory=list)
    """(from, until, how many times as long an item takes)."""
    restarts: int = 0
    _changes_us: list[int] = field(default_factory=list)
    """When instances come or go by the decision that is being carried out."""
    _stops: list[VirtualInstance] = field(default_factory=list)
    """Those that it stops and that work now."""

    def drained(self, now_us: int) -> dict[int, int]:
        """Instances that have ended and were not taken away yet, with the time of their end."""
        drain_us = us(self.calibration.drain_s)
        stopping = (one for one in self.fleet.instances.values() if one.stopping)
        ends_us = {one.number: (one.stopped_us or 0) + drain_us for one in stopping}
        return {number: end_us for number, end_us in ends_us.items() if end_us <= now_us}

    def settle(self, now_us: int) -> None:
        """Remove instances that have drained, and hosts whose last instance has."""
        self.remove(self.drained(now_us), now_us)
        self.replaces = {
            new: old for new, old in self.replaces.items() if self._starts(new, now_us)
        }
        self.hot_us = [period for period in self.hot_us if period[1] > now_us]
        for one in self.fleet.instances.values():
            if one.successor and not self._starts(one.successor, now_us):
                one.successor = 0

    def fail(self, who: VirtualHost | VirtualInstance, now_us: int) -> None:
        """A host is lost, a boot fails, or an instance crashes. Items stay in their queues."""
        if isinstance(who, VirtualInstance):
            self._lose(who, now_us)
            self.events.append((now_us / 1e6, "instance_crash", who.name, "its items wait"))
            self.settle(now_us)
            self.restart_after_changes(now_us)
            return
        gone = self.fleet.on_host(who.number)
        for one in gone:
            self._lose(one, now_us)
        who.ended_us = now_us
        detail = f"{len(gone)} instances lost, their items wait"
        self.events.append((now_us / 1e6, who.fails_as, who.name, detail))
        self.restart_after_changes(now_us)

    def restart_after_changes(self, now_us: int, *, decided: bool = False) -> None:
        """Restart the job once all that one decision starts is ready; what it stops works until
        then."""
        changes_us, self._changes_us = self._changes_us, []
        stops, self._stops = self._stops, []
        settings = self.calibration.restart
        if changes_us and (settings or self.calibration.rescale):
            if rescale := self.calibration.rescale:
                down_us = us(rescale.gap(self.draws, self.restarts, len(self.fleet.serving())))
            elif settings:
                down_us = self.draws.between_us("down", str(self.restarts), settings.down_s)
            for one in stops:
                one.stopped_us = max(changes_us)
            self.restart_job(max(changes_us), down_us, decided=decided)
            detail = f"down for {down_us / 1e6:.1f} s from {max(changes_us) / 1e6:.1f} s on"
            self.events.append((now_us / 1e6, "job_restart", "job", detail))

    def restart_job(self, from_us: int, down_us: int, *, decided: bool = False) -> None:
        """Nobody processes anything for so long, and then all are slow for a while."""
        self.restarts += 1
        until_us = from_us + down_us
        self.pauses_us += [(row, from_us, until_us, NOBODY) for row in self.rows.values()]
        self.ups_us.append((until_us, down_us, decided))
        if decided:
            self.pause_job(from_us, until_us)
        phases = (self.calibration.rescale, self.calibration.restart)
        if hot := next((phase for phase in phases if phase and phase.hot_s[1]), None):
            hot_us, factor = hot.hot_phase(self.draws, self.restarts)
            self.hot_us.append((until_us, until_us + hot_us, factor))

    def calm(self) -> None:
        """What was deployed runs; only the restarts that are given are to come."""
        self.pauses_us, self._changes_us, self._stops = [], [], []
        for at_s, down_s in self.faults.restarts:
            self.restart_job(us(at_s), us(down_s))

    def lease(self, action: LeaseHost, now_us: int) -> VirtualHost:
        """Order a host. Raises CapacityExhausted when all are leased."""
        if len(self.fleet.leased()) >= self.config.max_hosts:
            raise CapacityExhausted(f"all {self.config.max_hosts} hosts are leased")
        return VirtualCloud.lease(self, action, now_us)

    def start(self, operator: str, host: VirtualHost, now_us: int) -> VirtualInstance:
        """Start an instance; rescaling may pause its operator."""
        one = self.new_instance(operator, host, now_us)
        self._pause(one, one.ready_us, self._rescale_s(operator))
        self._changes_us.append(one.ready_us)
        self.log(now_us, "upscaling", operator, one.name, host.name)
        return one

    def migrate(
        self, old: VirtualInstance, host: VirtualHost, now_us: int, *, overlaps: bool
    ) -> VirtualInstance:
        """The old instance serves until the new one is ready; only state makes a gap.

        Where a copy never gets ready the old one goes on, and its host is not being released.
        """
        one = self.new_instance(old.operator, host, now_us)
        operator = self.config.topology.operator[old.operator]
        if operator.stateful:
            pause_s = self.calibration.migration_pause_s
            pause_s += operator.state_mb / self.calibration.state_mb_per_s
            self._pause(one, one.ready_us, pause_s)
        self.hand_over(old, one, overlaps=overlaps)
        self._changes_us.append(one.ready_us)
        if not overlaps:
            old.stopped_us = one.ready_us
            self._stops.append(old)
            self.replaces[one.number] = old.number
        self.log(now_us, "migration", one.operator, one.name, host.name)
        return one

    def stop(self, one: VirtualInstance, now_us: int) -> None:
        """Stop an instance gracefully; rescaling may pause its operator, if it has started."""
        self._cancel(one, now_us)
        one.stopped_us = now_us
        if one.ready_us <= now_us:
            self._stops.append(one)
            self._pause(one, now_us, self._rescale_s(one.operator))
            self._changes_us.append(now_us)
        self.log(now_us, "downscaling", one.operator, one.name, f"host-{one.host}")

    def _rescale_s(self, operator: str) -> float:
        op = self.config.topology.operator[operator]
        moved_s = op.state_mb / self.calibration.state_mb_per_s if op.stateful else 0.0
        return self.calibration.rescale_pause_s + moved_s

    def _pause(self, one: VirtualInstance, from_us: int, length_s: float) -> None:
        self.pauses_us.append((one.row, from_us, from_us + us(length_s), one.number))

    def _starts(self, number: int, now_us: int) -> bool:
        one = self.fleet.instances.get(number)
        return one is not None and one.ready_us > now_us

    def _cancel(self, one: VirtualInstance, now_us: int) -> None:
        """What was to come with an instance that never gets ready: its predecessor stays."""
        if self._starts(one.number, now_us):
            old = self.fleet.instances.get(self.replaces.pop(one.number, 0))
            if old is not None and old.stopped_us is not None and old.stopped_us > now_us:
                self.undo_migration(old, one, now_us)
            self.undo_migrations(one, now_us)
            self.call_off_pauses(one.number, now_us)

    def _lose(self, one: VirtualInstance, now_us: int) -> None:
        self._cancel(one, now_us)
        self.fleet.instances.pop(one.number, None)
        left = one.stopped_us is not None and one.stopped_us <= now_us
        if one.ready_us <= now_us and not left:
            self._changes_us.append(now_us)
