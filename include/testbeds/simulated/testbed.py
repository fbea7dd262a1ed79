"""The testbed protocol over the simulated network and fleet."""

from __future__ import annotations

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
from include.model.observation import Observation
from include.testbeds.base import Scene
from include.testbeds.columns import as_columns
from include.testbeds.simulated import kernel
from include.testbeds.simulated.build import build_network
from include.testbeds.simulated.calibration import Calibration, Faults
from include.testbeds.simulated.cloud import Cloud, us
from include.testbeds.simulated.fleet import Fleet, Host, Instance
from include.testbeds.simulated.monitor import Monitor
from include.testbeds.simulated.network import Network
from include.testbeds.simulated.samples import host_sample, instance_sample, operator_samples
from include.testbeds.simulated.tables import ARRIVAL
from include.testbeds.snapshots import packed, unpacked

SNAPSHOT_VERSION = 2


@dataclass(slots=True)
class SimulatedTestbed:
    """Hosts, instances and queues that exist in memory only; time passes when it is told to."""

    scene: Scene
    network: Network = field(init=False)
    monitor: Monitor = field(init=False)
    cloud: Cloud = field(init=False)
    now_us: int = 0
    _gaps_us: np.ndarray = field(init=False)
    _arrivals: list[tuple[float, str, float, int]] = field(default_factory=list)
    _published: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Build the empty world at second 0."""
        scene = self.scene
        calibration = Calibration.model_validate(scene.calibration).complete(scene.topology)
        faults = Faults.model_validate(scene.faults)
        self.network = build_network(
            scene.topology, calibration, scene.levels_of, scene.duration_s, scene.seed
        )
        rows = {name: o for o, name in enumerate(self.network.names)}
        self.cloud = Cloud(scene, calibration, faults, self.network.draws, rows)
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

    @property
    def fleet(self) -> Fleet:
        """Hosts and instances."""
        return self.cloud.fleet

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
            self.cloud.events.append((self.now_s, "monitoring_gap", "monitor", "no answer"))
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
        drain_us = us(self.cloud.calibration.drain_s)
        ended_us: dict[int, int] = {}
        for one in [one for one in self.fleet.instances.values() if one.stopped_us is not None]:
            slot = self.network.slot(one.operator, one.number)
            server = self.network.state.servers[one.operator, slot]
            end_us = max((one.stopped_us or 0) + drain_us, int(server[kernel.DONE_US]))
            if end_us <= self.now_us and not server[kernel.BUSY]:
                self.network.remove_server(one.operator, one.number)
                del self.fleet.instances[one.number]
                ended_us[one.host] = max(end_us, ended_us.get(one.host, 0))
        self.cloud.end_empty(ended_us, self.now_us)

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out the first decision; hosts and instances are up before time starts."""
        outcomes = self.apply(decision)
        self.cloud.begin()
        self.network.state.servers[:, :, kernel.READY_US] = 0
        self.network.state.free_us[:] = 0
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
                subject = handles[action.handle] = self.cloud.lease(action, self.now_us)
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
                subject = self.cloud.prolong(self.fleet.host(action.host), self.now_us)
            case ReleaseHost():
                subject = self.cloud.release(self.fleet.host(action.host), self.now_us)
        detail = "" if subject else f"the testbed does not know what {action} is about"
        return Outcome(action, step.because, bool(subject), subject, detail)

    def _start(self, operator_name: str, host: Host | None, activity: str) -> str:
        if host is None or operator_name not in self.scene.topology.operator_names:
            return ""
        one = self.cloud.new_instance(operator_name, host, self.now_us)
        self.network.add_server(one.operator, one.number, host.number, one.ready_us)
        if self.cloud.calibration.pause_on_start_s and self.now_us:
            pause_us = one.ready_us - us(self.cloud.calibration.pause_on_start_s)
            self.network.pause(one.operator, max(self.now_us, pause_us), one.ready_us)
        self.cloud.log(self.now_us, activity, operator_name, one.name, host.name)
        return one.name

    def _stop(self, one: Instance | None, activity: str) -> str:
        if one is None:
            return ""
        one.stopped_us = self.now_us
        self.network.close_server(one.operator, one.number)
        if self.cloud.calibration.pause_on_stop_s and one.ready_us <= self.now_us:
            end_us = self.now_us + us(self.cloud.calibration.pause_on_stop_s)
            self.network.pause(one.operator, self.now_us, end_us)
        if activity:
            self.cloud.log(self.now_us, activity, one.operator_name, one.name, f"host-{one.host}")
        return one.name

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
            self.cloud.events.append((self.now_s, "instance_crash", who.name, detail))
            return
        gone = self.fleet.on_host(who.number)
        lost_items = 0
        for one in gone:
            lost_items += self.network.crash_server(one.operator, one.number, self.now_us)
            del self.fleet.instances[one.number]
        who.ended_us = self.now_us
        detail = f"{len(gone)} instances lost, {lost_items} items queued again"
        self.cloud.events.append((self.now_s, who.fails_as, who.name, detail))

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
        tables = self.monitor.take() | self.cloud.take()
        if self._arrivals:
            tables["arrival"] = as_columns(self._arrivals, ARRIVAL)
        self._arrivals = []
        return tables

    def leases(self) -> dict[str, list[Any]]:
        """The lease log so far, as columns; hosts that are still leased end now."""
        return self.cloud.leases(self.now_us)

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state. Take measurements first: rows are not part of it."""
        plain = {
            "now_us": self.now_us,
            "published": self._published,
            "fleet": self.fleet.to_plain(),
            "monitor": self.monitor.to_plain(),
        }
        return {"plain": packed(plain, SNAPSHOT_VERSION), **self.network.arrays()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a snapshot. Raises StoreError when another version wrote it."""
        plain = unpacked(arrays["plain"], SNAPSHOT_VERSION)
        self.now_us = plain["now_us"]
        self._published = plain["published"]
        self.cloud.fleet = Fleet.from_plain(plain["fleet"])
        self.monitor.load_plain(plain["monitor"])
        self.network.load(arrays)

    def close(self) -> None:
        """Nothing outlives the process; there is nothing to give back."""
