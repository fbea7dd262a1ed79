"""The testbed protocol over the simulated network and fleet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
from include.model.errors import StoreError
from include.model.observation import Observation
from include.testbeds.base import Scene
from include.testbeds.simulated import kernel
from include.testbeds.simulated.build import build_network
from include.testbeds.simulated.calibration import Calibration, Faults
from include.testbeds.simulated.fleet import Fleet, Host, Instance
from include.testbeds.simulated.monitor import Monitor
from include.testbeds.simulated.network import Network
from include.testbeds.simulated.samples import host_sample, instance_sample, operator_samples

SNAPSHOT_VERSION = 2


def us(time_s: float) -> int:
    """Seconds as whole microseconds."""
    return round(time_s * 1e6)


@dataclass(slots=True)
class SimulatedTestbed:
    """Hosts, instances and queues that exist in memory only; time passes when it is told to."""

    scene: Scene
    calibration: Calibration = field(init=False)
    faults: Faults = field(init=False)
    network: Network = field(init=False)
    monitor: Monitor = field(init=False)
    fleet: Fleet = field(default_factory=Fleet)
    now_us: int = 0
    _gaps_us: np.ndarray = field(init=False)
    _activities: list[tuple[float, str, str, str, str]] = field(default_factory=list)
    _events: list[tuple[float, str, str, str]] = field(default_factory=list)
    _arrivals: list[tuple[float, str, float, int]] = field(default_factory=list)
    _published: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Build the empty world at second 0."""
        scene = self.scene
        calibration = Calibration.model_validate(scene.calibration).complete(scene.topology)
        faults = Faults.model_validate(scene.faults)
        self.calibration, self.faults = calibration, faults
        self.network = build_network(
            scene.topology, calibration, scene.levels_of, scene.duration_s, scene.seed
        )
        capacity = scene.flavor.capacity
        self.monitor = Monitor(
            self.network, calibration.cpu_noise, capacity.cpu_cores, capacity.memory_mb
        )
        self._gaps_us = self.network.draws.periods_us(
            "gap",
            "monitor",
            faults.monitoring_gaps_per_hour,
            faults.monitoring_gap_s,
            us(scene.duration_s),
        )
        self._published = [0] * len(scene.topology.sources)

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        return self.now_us / 1e6

    # ------------------------------------------------------------------ time

    def advance_to(self, t_s: float) -> None:
        """Let items flow until ``t_s``, with monitor readings and faults at their times."""
        target_us = us(t_s)
        if target_us < self.now_us:
            raise ValueError(f"time cannot go back from {self.now_s:g} s to {t_s:g} s")
        period_us = us(self.scene.monitor_every_s)
        while self.now_us < target_us:
            reading_us = (self.now_us // period_us + 1) * period_us
            failure = self.fleet.next_failure()
            failure_us = failure[0] if failure else target_us
            self.now_us = min(target_us, reading_us, max(failure_us, self.now_us))
            self.network.advance(self.now_us)
            while failure and failure[0] <= self.now_us:
                self._fail(failure[1])
                failure = self.fleet.next_failure()
            if self.now_us == reading_us:
                self._read(period_us)

    def _read(self, period_us: int) -> None:
        self._settle()
        now_us, gaps_us = self.now_us, self._gaps_us
        missed = bool(((gaps_us[:, 0] < now_us) & (now_us <= gaps_us[:, 1])).any())
        if missed and not self.monitor.reading.missed:
            self._events.append((self.now_s, "monitoring_gap", "monitor", "no answer"))
        self.monitor.read(now_us, period_us, self.fleet, missed=missed)
        sources = self.network.state.nodes[len(self.network.names) :]
        numbered = sources[:, kernel.NUMBERED].tolist()
        since_s = self.now_s - self.scene.monitor_every_s
        for i, source in enumerate(self.scene.topology.sources):
            items = numbered[i] - self._published[i]
            level = self.scene.levels_of[source.name].at(since_s)
            self._arrivals.append((self.now_s, source.name, level, items))
        self._published = numbered

    def _settle(self) -> None:
        """Take away instances that have drained, and hosts whose last instance has."""
        drain_us = us(self.calibration.drain_s)
        ended_us: dict[int, int] = {}
        for one in [one for one in self.fleet.instances.values() if one.stopped_us is not None]:
            slot = self.network.slot(one.operator, one.number)
            server = self.network.state.servers[one.operator, slot]
            end_us = max((one.stopped_us or 0) + drain_us, int(server[kernel.DONE_US]))
            if end_us <= self.now_us and not server[kernel.BUSY]:
                self.network.remove_server(one.operator, one.number)
                del self.fleet.instances[one.number]
                ended_us[one.host] = max(end_us, ended_us.get(one.host, 0))
        for host in [host for host in self.fleet.leased() if host.releasing]:
            if not self.fleet.on_host(host.number):
                host.ended_us = ended_us.get(host.number, self.now_us)

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out the first decision; hosts and instances are up before time starts."""
        outcomes = self.apply(decision)
        for host in self.fleet.leased():
            host.up_us, host.fails_us, host.fails_as = 0, None, ""
            host.fails_us = self._loss_us(host.number, 0)
            host.fails_as = "host_lost"
        self.network.state.servers[:, :, kernel.READY_US] = 0
        self.network.state.free_us[:] = 0
        for one in self.fleet.instances.values():
            one.ready_us = 0
        return outcomes

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out each action in order; unknown hosts and instances are refused."""
        self._settle()
        handles: dict[str, str] = {}
        outcomes = tuple(self._carry_out(step, handles) for step in decision.steps)
        self._share_cpu()
        return outcomes

    def _carry_out(self, step: Reasoned, handles: dict[str, str]) -> Outcome:
        action: Action = step.action
        match action:
            case LeaseHost():
                subject = handles[action.handle] = self._lease(action)
            case StartInstance():
                host = self.fleet.host(handles.get(action.host, action.host))
                subject = self._start(action.operator, host, "upscaling")
            case StopInstance():
                subject = self._stop(self.fleet.instance(action.instance), "downscaling")
            case MigrateInstance():
                host = self.fleet.host(handles.get(action.host, action.host))
                one = self.fleet.instance(action.instance)
                subject = self._start(one.operator_name, host, "migration") if one else ""
                if subject:
                    self._stop(one, "")
            case ProlongLease():
                subject = self._prolong(self.fleet.host(action.host))
            case ReleaseHost():
                subject = self._release(self.fleet.host(action.host))
        detail = "" if subject else f"the testbed does not know what {action} is about"
        return Outcome(action, step.because, bool(subject), subject, detail)

    def _lease(self, action: LeaseHost) -> str:
        scene, draws = self.scene, self.network.draws
        number = len(self.fleet.hosts) + 1
        boot_us = draws.between_us("boot", str(number), self.calibration.host_boot_s)
        if draws.chance("boot_delay", str(number), self.faults.host_boot_delay):
            late_us = draws.between_us("boot_late", str(number), self.faults.host_boot_delay_s)
            boot_us += late_us
            detail = f"{late_us / 1e6:.0f} s later than usual"
            self._events.append((self.now_s, "host_boot_delay", f"host-{number}", detail))
        host = Host(
            number=number,
            flavor=action.flavor,
            ordered_us=self.now_us,
            paid_until_us=self.now_us + us(scene.btu_s),
            up_us=self.now_us + boot_us,
        )
        if draws.chance("boot_failure", str(number), self.faults.host_boot_failure):
            host.fails_us, host.fails_as = host.up_us, "host_boot_failure"
        else:
            host.fails_us, host.fails_as = self._loss_us(number, host.up_us), "host_lost"
        self.fleet.hosts[number] = host
        self._log("host_leased", host=host.name)
        return host.name

    def _loss_us(self, number: int, up_us: int) -> int | None:
        rate = self.faults.host_losses_per_hour
        after_us = self.network.draws.after_us("host_loss", str(number), rate)
        return None if after_us is None else up_us + after_us

    def _start(self, operator_name: str, host: Host | None, activity: str) -> str:
        if host is None or operator_name not in self.scene.topology.operator_names:
            return ""
        draws = self.network.draws
        self.fleet.instances_started += 1
        number = self.fleet.instances_started
        ready_us = max(self.now_us, host.up_us)
        ready_us += draws.between_us("start", str(number), self.calibration.instance_start_s)
        if operator_name not in host.images:
            ready_us += draws.between_us("pull", str(number), self.calibration.image_pull_s)
            host.images.append(operator_name)
        after_us = draws.after_us("crash", str(number), self.faults.instance_crashes_per_hour)
        one = Instance(
            number=number,
            operator=self.network.names.index(operator_name),
            operator_name=operator_name,
            host=host.number,
            started_us=self.now_us,
            ready_us=ready_us,
            crashes_us=None if after_us is None else ready_us + after_us,
        )
        self.fleet.instances[number] = one
        self.network.add_server(one.operator, number, host.number, ready_us)
        if self.calibration.pause_on_start_s and self.now_us:
            pause_us = ready_us - us(self.calibration.pause_on_start_s)
            self.network.pause(one.operator, max(self.now_us, pause_us), ready_us)
        self._log(activity, operator_name, one.name, host.name)
        return one.name

    def _stop(self, one: Instance | None, activity: str) -> str:
        if one is None:
            return ""
        one.stopped_us = self.now_us
        self.network.close_server(one.operator, one.number)
        if self.calibration.pause_on_stop_s and one.ready_us <= self.now_us:
            end_us = self.now_us + us(self.calibration.pause_on_stop_s)
            self.network.pause(one.operator, self.now_us, end_us)
        if activity:
            self._log(activity, one.operator_name, one.name, f"host-{one.host}")
        return one.name

    def _prolong(self, host: Host | None) -> str:
        if host is None:
            return ""
        host.paid_until_us += us(self.scene.btu_s)
        self._log("host_prolonged", host=host.name)
        return host.name

    def _release(self, host: Host | None) -> str:
        if host is None:
            return ""
        host.releasing = True
        self._log("host_released", host=host.name)
        if not self.fleet.on_host(host.number):
            host.ended_us = self.now_us
        return host.name

    def _share_cpu(self) -> None:
        """Instances of a host whose CPU is promised twice run at their share of it."""
        operators = self.scene.topology.operator
        speed_permille = self.network.state.servers[:, :, kernel.SPEED_PERMILLE]
        demand: dict[int, float] = {}
        for one in self.fleet.instances.values():
            cores = operators[one.operator_name].cpu_cores
            demand[one.host] = demand.get(one.host, 0.0) + cores
        crowded = {host for host, cores in demand.items() if cores > self.scene.flavor.vcpus}
        if not crowded and (speed_permille[self.network.slots_in_use()] == 1000).all():
            return
        for one in self.fleet.instances.values():
            share = min(1.0, self.scene.flavor.vcpus / demand[one.host])
            slot = self.network.slot(one.operator, one.number)
            speed_permille[one.operator, slot] = max(1, round(1000 * share))

    def _fail(self, who: Host | Instance) -> None:
        """A host is lost, a boot fails, or an instance crashes. Items go back to their queues."""
        if isinstance(who, Instance):
            lost = self.network.crash_server(who.operator, who.number, self.now_us)
            del self.fleet.instances[who.number]
            detail = "its item was queued again" if lost else "it was idle"
            self._events.append((self.now_s, "instance_crash", who.name, detail))
            return
        gone = self.fleet.on_host(who.number)
        lost_items = 0
        for one in gone:
            lost_items += self.network.crash_server(one.operator, one.number, self.now_us)
            del self.fleet.instances[one.number]
        who.ended_us = self.now_us
        detail = f"{len(gone)} instances lost, {lost_items} items queued again"
        self._events.append((self.now_s, who.fails_as, who.name, detail))

    def _log(self, activity: str, operator: str = "", instance: str = "", host: str = "") -> None:
        self._activities.append((self.now_s, activity, operator, instance, host))

    # --------------------------------------------------------------- reading

    def observe(self) -> Observation:
        """The last reading of the monitor, and the hosts and instances as they are now."""
        self._settle()
        reading = self.monitor.reading
        readings = zip(reading.instance_cpu.tolist(), self.monitor.instance_memory(), strict=True)
        of_instance = dict(zip(reading.instances.tolist(), readings, strict=True))
        shares = zip(reading.host_cpu.tolist(), reading.host_memory.tolist(), strict=True)
        of_host = dict(zip(reading.hosts.tolist(), shares, strict=True))
        return Observation(
            now_s=self.now_s,
            operators={} if reading.missed else operator_samples(self.monitor),
            hosts={
                host.name: host_sample(host, self.now_us, *of_host.get(host.number, (None, None)))
                for host in self.fleet.leased()
            },
            instances={
                one.name: instance_sample(
                    one, self.now_us, *of_instance.get(one.number, (None, None))
                )
                for one in self.fleet.instances.values()
            },
        )

    # ------------------------------------------------------------- recording

    def take_measurements(self) -> dict[str, dict[str, Any]]:
        """Rows measured since the last call, as columns."""
        tables = self.monitor.take()
        for table, rows, columns in (
            ("scaling_activity", self._activities, "time_s activity operator instance host"),
            ("event", self._events, "time_s event subject detail"),
            ("arrival", self._arrivals, "time_s source level published_items"),
        ):
            if rows:
                values = zip(*rows, strict=True)
                tables[table] = dict(zip(columns.split(), map(list, values), strict=True))
        self._activities, self._events, self._arrivals = [], [], []
        return tables

    def leases(self) -> dict[str, list[Any]]:
        """The lease log so far, as columns; hosts that are still leased end now."""
        hosts = list(self.fleet.hosts.values())
        return {
            "host": [host.name for host in hosts],
            "flavor": [host.flavor for host in hosts],
            "ordered_s": [host.ordered_us / 1e6 for host in hosts],
            "ended_s": [
                (self.now_us if host.ended_us is None else host.ended_us) / 1e6 for host in hosts
            ],
            "paid_until_s": [host.paid_until_us / 1e6 for host in hosts],
            "released": [host.ended_us is not None for host in hosts],
        }

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state. Take measurements first: rows are not part of it."""
        plain = {
            "version": SNAPSHOT_VERSION,
            "now_us": self.now_us,
            "published": self._published,
            "fleet": self.fleet.to_plain(),
            "monitor": self.monitor.to_plain(),
        }
        text = json.dumps(plain, separators=(",", ":")).encode()
        return {"plain": np.frombuffer(text, dtype=np.uint8), **self.network.arrays()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a snapshot. Raises StoreError when another version wrote it."""
        plain = json.loads(arrays["plain"].tobytes())
        if plain["version"] != SNAPSHOT_VERSION:
            raise StoreError(
                f"the snapshot has version {plain['version']}, this code reads "
                f"{SNAPSHOT_VERSION}; remove the run's folder and run it again"
            )
        self.now_us = plain["now_us"]
        self._published = plain["published"]
        self.fleet = Fleet.from_plain(plain["fleet"])
        self.monitor.load_plain(plain["monitor"])
        self.network.load(arrays)

    def close(self) -> None:
        """Nothing outlives the process; there is nothing to give back."""
