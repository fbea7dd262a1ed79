"""Leases, starts and their faults on virtual hosts: everything but the queues."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, ClassVar

from include.model.decision import LeaseHost
from include.model.host import btus_to_pay
from include.testbeds.base import TestbedConfig
from include.testbeds.columns import as_columns
from include.testbeds.snapshots import StoredState
from include.testbeds.virtual.calibration import VirtualCalibration, VirtualFaults
from include.testbeds.virtual.draws import Draws
from include.testbeds.virtual.fleet import VirtualFleet, VirtualHost, VirtualInstance

ACTIVITY = ("time_s", "activity", "operator", "instance", "host")
EVENT = ("time_s", "event", "subject", "detail")
PAUSE = ("operator", "from_s", "until_s")
NOBODY = 0
"""The number of no instance."""


def us(time_s: float) -> int:
    """Seconds as whole microseconds."""
    return round(time_s * 1e6)


@dataclass(slots=True)
class VirtualCloud(StoredState):
    """Leases hosts and starts instances. Times are microseconds since the run began."""

    STORED: ClassVar[tuple[str, ...]] = ("fleet", "pauses_us", "over_us", "ups_us", "starts_over")

    config: TestbedConfig
    calibration: VirtualCalibration
    faults: VirtualFaults
    draws: Draws
    rows: dict[str, int]
    """Row of every operator in arrays, by name."""
    fleet: VirtualFleet = field(default_factory=VirtualFleet)
    activities: list[tuple[float, str, str, str, str]] = field(default_factory=list)
    events: list[tuple[float, str, str, str]] = field(default_factory=list)
    pauses_us: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(operator, from, until, instance whose coming or going is the reason, or NOBODY)."""
    pauses: list[tuple[str, float, float]] = field(default_factory=list)
    """Rows of pauses for changes: of operators once they begin, of the whole job once ordered."""
    recorded_us: int = 0
    """Until when pauses of operators are in these rows."""
    over_us: dict[int, tuple[int, int]] = field(default_factory=dict)
    """As :meth:`paused`, of the pauses that are not kept any more."""
    ups_us: list[tuple[int, int, bool]] = field(default_factory=list)
    """(when the job is up again, how long it was down, whether for a decision) of every start of
    the whole job that is to come, or is not in ``starts_over`` yet."""
    starts_over: tuple[int, int, int, int] = (0, 0, 0, 0)
    """As :meth:`job_starts`, of those that are not kept any more."""

    def lease(self, action: LeaseHost, now_us: int) -> VirtualHost:
        draws = self.draws
        self.fleet.hosts_leased += 1
        number = self.fleet.hosts_leased
        boot_us = draws.between_us("boot", str(number), self.calibration.host_boot_s)
        if draws.chance("boot_delay", str(number), self.faults.host_boot_delay):
            late_us = draws.between_us("boot_late", str(number), self.faults.host_boot_delay_s)
            boot_us += late_us
            detail = f"{late_us / 1e6:.0f} s later than usual"
            self.events.append((now_us / 1e6, "host_boot_delay", f"host-{number}", detail))
        host = VirtualHost(
            number=number,
            flavor=action.flavor,
            ordered_us=now_us,
            paid_until_us=now_us + us(self.config.btu_s),
            up_us=now_us + boot_us,
        )
        if draws.chance("boot_failure", str(number), self.faults.host_boot_failure):
            host.fails_us, host.fails_as = host.up_us, "host_boot_failure"
        else:
            host.fails_us, host.fails_as = self._loss_us(number, host.up_us), "host_lost"
        self.fleet.hosts[number] = host
        self.log(now_us, "host_leased", host=host.name)
        return host

    def begin(self) -> None:
        """Make all ordered hosts and instances ready at second 0."""
        for host in self.fleet.leased():
            host.up_us, host.there_us = 0, {}
            host.fails_us, host.fails_as = self._loss_us(host.number, 0), "host_lost"
        for instance in self.fleet.instances.values():
            if instance.crashes_us is not None:
                instance.crashes_us -= instance.ready_us
            instance.ready_us = 0

    def prolong(self, host: VirtualHost, now_us: int) -> None:
        btu_us = us(self.config.btu_s)
        host.paid_until_us += btu_us * btus_to_pay(host.paid_until_us, now_us, btu_us)
        self.log(now_us, "host_prolonged", host=host.name)

    def release(self, host: VirtualHost, now_us: int) -> None:
        host.releasing = True
        self.log(now_us, "host_released", host=host.name)
        if not self.fleet.on_host(host.number):
            self._end(host, now_us)

    def remove(self, drained_us: dict[int, int], now_us: int) -> None:
        """Remove drained instances (number to end time) and released hosts without any."""
        ended_us: dict[int, int] = {}
        for number, end_us in drained_us.items():
            host = self.fleet.instances.pop(number).host
            ended_us[host] = max(end_us, ended_us.get(host, 0))
        self.end_empty(ended_us, now_us)
        self.forget_pauses(now_us)

    def end_empty(self, ended_us: dict[int, int], now_us: int) -> None:
        """End released hosts without instances, at ``ended_us`` by number or else now."""
        releasing = [
            host for host in self.fleet.hosts.values() if host.releasing and not host.ended
        ]
        held = {instance.host for instance in self.fleet.instances.values()} if releasing else set()
        for host in releasing:
            if host.number not in held:
                self._end(host, ended_us.get(host.number, now_us))

    def _end(self, host: VirtualHost, empty_us: int) -> None:
        """Nobody can use it any more; its lease may go on for a moment, in the run's time."""
        takes_s = self.calibration.host_release_s
        if any(takes_s):
            takes_us = self.draws.between_us("release", str(host.number), takes_s)
            empty_us = min(empty_us + takes_us, us(self.config.duration_s))
        host.ended_us = empty_us

    def new_instance(self, operator: str, host: VirtualHost, now_us: int) -> VirtualInstance:
        """Order an instance. It is ready after its host's boot, its image pull and its start.

        Instances of one operator wait for one pull.
        """
        draws = self.draws
        self.fleet.instances_started += 1
        number = self.fleet.instances_started
        ready_us = max(now_us, host.up_us)
        if operator not in host.images:
            host.images.append(operator)
            pull_us = draws.between_us("pull", str(number), self.calibration.image_pull_s)
            host.there_us[operator] = ready_us + pull_us
        ready_us = max(ready_us, host.there_us.get(operator, 0))
        ready_us += draws.between_us("start", str(number), self.calibration.instance_start_s)
        after_us = draws.after_us("crash", str(number), self.faults.instance_crashes_per_hour)
        instance = VirtualInstance(
            number=number,
            operator=operator,
            row=self.rows[operator],
            host=host.number,
            started_us=now_us,
            ready_us=ready_us,
            crashes_us=None if after_us is None else ready_us + after_us,
        )
        self.fleet.instances[number] = instance
        return instance

    def hand_over(self, old: VirtualInstance, copy: VirtualInstance, *, overlaps: bool) -> None:
        """Make ``copy`` the successor of all instances that waited for ``old``.

        With ``overlaps`` ``old`` itself also serves until the copy is ready.
        """
        for instance in self.fleet.replaced_by(old.number):
            instance.serves_until(copy)
        if overlaps:
            old.serves_until(copy)

    def call_off_pauses(self, number: int, now_us: int) -> list[tuple[int, int, int, int]]:
        """Take back the pauses for an instance that have not begun; returns them."""
        called_off = [one for one in self.pauses_us if one[3] == number and one[1] > now_us]
        self.pauses_us = [one for one in self.pauses_us if one not in called_off]
        return called_off

    def undo_migrations(self, copy: VirtualInstance, now_us: int) -> None:
        """Undo migrations to a copy that ended before it was ready: the originals continue."""
        for instance in self.fleet.replaced_by(copy.number):
            self.undo_migration(instance, copy, now_us)

    def undo_migration(self, instance: VirtualInstance, copy: VirtualInstance, now_us: int) -> None:
        """An instance continues, and somebody has to decide on its host again."""
        instance.successor, instance.stopped_us = 0, None
        self.fleet.hosts[instance.host].releasing = False
        detail = f"its copy {copy.name} ended before it was ready"
        self.events.append((now_us / 1e6, "migration_undone", instance.name, detail))

    def paused(self, now_us: int) -> dict[int, tuple[int, int]]:
        """By row: how often an operator paused when its instances came or went, and for how long.

        Only what is over. Pauses that overlap are one; (0, 0) if it never paused.
        """
        periods: list[list[int]] = []  # operator, from, until
        for row, from_us, until_us, number in sorted(self.pauses_us):
            if number == NOBODY:
                continue
            if periods and periods[-1][0] == row and from_us < periods[-1][2]:
                periods[-1][2] = max(periods[-1][2], until_us)
            else:
                periods.append([row, from_us, until_us])
        over_us = dict(self.over_us)
        for row, from_us, until_us in periods:
            if until_us <= now_us:
                times, total_us = over_us.get(row, (0, 0))
                over_us[row] = times + (until_us > from_us), total_us + until_us - from_us
        return over_us

    def forget_pauses(self, now_us: int) -> None:
        """Keep no pauses of operators that do not pause any more; they stay counted."""
        self.record_pauses(now_us)
        self.starts_over = self.job_starts(now_us)
        self.ups_us = [start for start in self.ups_us if start[0] > now_us]
        pausing = {row for row, _, until_us, who in self.pauses_us if who and until_us > now_us}
        left = [
            pause
            for pause in self.pauses_us
            if pause[2] > now_us or (pause[3] != NOBODY and pause[0] in pausing)
        ]
        if len(left) < len(self.pauses_us):
            over_us = self.paused(now_us).items()
            self.over_us |= {row: over for row, over in over_us if row not in pausing}
            self.pauses_us = left

    def job_starts(self, now_us: int) -> tuple[int, int, int, int]:
        """When the job was up last, how often it was started again, how often of these for a
        decision, and how long it was down for those, us. Only what is over."""
        up_us, starts, changes, down_us = self.starts_over
        for start_us, gap_us, decided in self.ups_us:
            if start_us <= now_us:
                up_us, starts = max(up_us, start_us), starts + 1
                changes, down_us = changes + decided, down_us + decided * gap_us
        return up_us, starts, changes, down_us

    def record_pauses(self, now_us: int) -> None:
        """Make rows of the pauses that changes made and that have begun since the last call."""
        names = tuple(self.rows)
        self.pauses += [
            (names[row], from_us / 1e6, until_us / 1e6)
            for row, from_us, until_us, who in sorted(self.pauses_us, key=itemgetter(1))
            if who != NOBODY and self.recorded_us <= from_us < min(until_us, now_us)
        ]
        self.recorded_us = now_us

    def pause_job(self, from_us: int, until_us: int) -> None:
        """Make a row of a change for which the whole job is down."""
        self.pauses.append(("", from_us / 1e6, until_us / 1e6))

    def log(
        self, now_us: int, activity: str, operator: str = "", instance: str = "", host: str = ""
    ) -> None:
        self.activities.append((now_us / 1e6, activity, operator, instance, host))

    def take_tables(self, now_us: int) -> dict[str, dict[str, Any]]:
        """Activities, events and pauses since the last call, as columns; no empty tables."""
        self.record_pauses(now_us)
        taken = {
            "scaling_activity": as_columns(self.activities, ACTIVITY),
            "event": as_columns(self.events, EVENT),
            "pause": as_columns(self.pauses, PAUSE),
        }
        self.activities, self.events, self.pauses = [], [], []
        return {table: columns for table, columns in taken.items() if any(columns.values())}

    def leases(self, now_us: int) -> dict[str, list[Any]]:
        """Lease log of the fleet's hosts, as columns; open leases end now."""
        return _lease_log(self.fleet.hosts.values(), now_us)

    def take_ended_leases(self) -> dict[str, list[Any]]:
        """The lease log of the hosts that have ended, and forget them."""
        ended = [host for host in self.fleet.hosts.values() if host.ended]
        for host in ended:
            del self.fleet.hosts[host.number]
        return _lease_log(ended, 0)

    def _loss_us(self, number: int, up_us: int) -> int | None:
        rate = self.faults.host_losses_per_hour
        after_us = self.draws.after_us("host_loss", str(number), rate)
        return None if after_us is None else up_us + after_us


def _lease_log(hosts: Collection[VirtualHost], now_us: int) -> dict[str, list[Any]]:
    ended_us = [now_us if host.ended_us is None else host.ended_us for host in hosts]
    return {
        "host": [host.name for host in hosts],
        "flavor": [host.flavor for host in hosts],
        "ordered_s": [host.ordered_us / 1e6 for host in hosts],
        "ended_s": [end_us / 1e6 for end_us in ended_us],
        "paid_until_s": [host.paid_until_us / 1e6 for host in hosts],
        "released": [host.ended for host in hosts],
    }
