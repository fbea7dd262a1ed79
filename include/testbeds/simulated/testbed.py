"""The testbed protocol over queues of single items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from include.model.decision import Decision, MigrateInstance, Outcome
from include.model.observation import Observation
from include.testbeds.base import ACTS
from include.testbeds.simulated import kernel
from include.testbeds.simulated.build import build_network
from include.testbeds.simulated.job import USUAL_PERMILLE, WholeJob
from include.testbeds.simulated.monitor import SimulatedMonitor
from include.testbeds.simulated.network import LATER_US, QueueingNetwork
from include.testbeds.snapshots import packed, unpacked
from include.testbeds.virtual.calibration import VirtualCalibration, VirtualFaults
from include.testbeds.virtual.cloud import VirtualCloud, us
from include.testbeds.virtual.fleet import VirtualHost, VirtualInstance
from include.testbeds.virtual.testbed import NEVER_US, SNAPSHOT_VERSION, VirtualTestbed


@dataclass(slots=True)
class SimulatedTestbed(VirtualTestbed):
    """Hosts, instances and every single item in memory."""

    monitor: SimulatedMonitor = field(init=False)
    network: QueueingNetwork = field(init=False)
    job: WholeJob | None = None
    """Where instances come and go all at once."""
    deploying: bool = False
    """Whether what starts is there from the beginning, and pauses nothing."""

    def build(self) -> None:
        config = self.config
        calibration = VirtualCalibration.model_validate(config.calibration)
        calibration = calibration.complete(config.topology)
        faults = VirtualFaults.model_validate(config.faults)
        self.network = network = build_network(
            config.topology, calibration, config.levels_of, config.duration_s, config.seed
        )
        rows = {name: o for o, name in enumerate(network.names)}
        self.cloud = VirtualCloud(config, calibration, faults, network.draws, rows)
        self.monitor = SimulatedMonitor.from_network(network, config.flavor.capacity)
        if calibration.rescale:
            self.job = WholeJob(calibration.rescale, network, self.cloud)

    def look(self, by: str = ACTS) -> Observation:
        """The last reading; of an engine there is none before the first period is over."""
        observation = VirtualTestbed.look(self, by)
        if self.job and self.now_us < us(self.config.monitor_every_s):
            observation = replace(observation, operators={}, published_in_all={})
        return observation

    # ------------------------------------------------------------------ time

    def move(self) -> None:
        self.network.advance(self.now_us)

    def read(self, period_us: int, *, missed: bool) -> list[int]:
        self.monitor.read(self.now_us, period_us, self.fleet, missed=missed)
        sources = self.network.state.nodes[len(self.network.names) :]
        published: list[int] = sources[:, kernel.NUMBERED].tolist()
        return published

    @property
    def _lets_in(self) -> bool:
        """Whether an instance has a turn, and nobody sends to it before it is ready."""
        return self.network.bounded and not self.job

    def next_stop_us(self) -> int:
        """Next time at which an instance that serves on is killed, its copy is ready, or one with
        a buffer of its own is."""
        instances = self.fleet.instances.values()
        ends_us = (one.stopped_us if one.successor else one.killed_us for one in instances)
        next_us = min((t_us for t_us in ends_us if t_us is not None), default=NEVER_US)
        if self.job:
            return min(next_us, self.job.next_us(self.now_us))
        if self._lets_in:
            to_come = (one.ready_us for one in instances if one.ready_us > self.now_us)
            return min(next_us, min(to_come, default=NEVER_US))
        return next_us

    def stopped(self) -> None:
        """Kill instances whose time to serve on is over, and requeue their items.

        Instances whose copies are ready take no new items; those with buffers that are ready do.
        """
        for instance in list(self.fleet.instances.values()):
            if self._lets_in and instance.ready_us == self.now_us:
                self.network.let_in(instance.row, instance.number, self.now_us)
            if instance.successor and instance.stopped_us == self.now_us:
                instance.successor = 0
                self._stop(instance, 0.0)
            elif instance.killed_us is not None and instance.killed_us <= self.now_us:
                self.network.crash_server(instance.row, instance.number, self.now_us)
                del self.fleet.instances[instance.number]
        if self.job:
            self.job.rescale_if_due(self.now_us)
        self.cloud.end_empty({}, self.now_us)
        self._set_speeds()

    def drained(self) -> dict[int, int]:
        drain_us = us(self.cloud.calibration.drain_s)
        ended_us: dict[int, int] = {}
        for instance in self.fleet.instances.values():
            if instance.stopped_us is None or instance.killed_us is not None:
                continue
            end_us = instance.stopped_us + drain_us
            if end_us > self.now_us:
                continue
            slot = self.network.slot(instance.row, instance.number)
            server = self.network.state.servers[instance.row, slot]
            end_us = max(end_us, int(server[kernel.DONE_US]))
            waits = self.job and server[kernel.OPEN]
            if not waits and end_us <= self.now_us and not server[kernel.BUSY]:
                ended_us[instance.number] = end_us
        return ended_us

    def remove_drained(self) -> None:
        drained_us = self.drained()
        for number in drained_us:
            self.network.remove_server(self.fleet.instances[number].row, number)
        self.cloud.remove(drained_us, self.now_us)
        if drained_us:
            self._set_speeds()

    def fail(self, who: VirtualHost | VirtualInstance) -> None:
        """A host is lost, a boot fails, or an instance crashes. Items go back to their queues."""
        gone = [who] if isinstance(who, VirtualInstance) else self.fleet.on_host(who.number)
        restarts, lost_items = self.job and self.job.forget(gone), 0
        for instance in gone:
            lost_items += self.network.crash_server(instance.row, instance.number, self.now_us)
            del self.fleet.instances[instance.number]
            self._call_off(instance)
        if self.job and restarts:
            self.job.start_without_lost(self.now_us)
        self._set_speeds()
        if isinstance(who, VirtualInstance):
            event = "instance_crash"
            detail = "its item was queued again" if lost_items else "it was idle"
        else:
            who.ended_us, event = self.now_us, who.fails_as
            detail = f"{len(gone)} instances lost, {lost_items} items queued again"
        self.cloud.end_empty({}, self.now_us)
        self.cloud.events.append((self.now_s, event, who.name, detail))

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        self.deploying = True
        outcomes = VirtualTestbed.deploy(self, decision)
        self.deploying = False
        self.network.begin()
        if self.job:
            self.job.begin()
        return outcomes

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        outcomes = VirtualTestbed.apply(self, decision)
        self._set_speeds()
        return outcomes

    def start(self, operator: str, host: VirtualHost) -> VirtualInstance:
        return self._start(operator, host, "upscaling")

    def stop(self, instance: VirtualInstance, serves_s: float) -> None:
        self._stop(instance, serves_s)
        self.cloud.log(
            self.now_us, "downscaling", instance.operator, instance.name, f"host-{instance.host}"
        )

    def migrate(
        self, instance: VirtualInstance, host: VirtualHost, action: MigrateInstance
    ) -> VirtualInstance:
        copy = self._start(instance.operator, host, "migration")
        if self.job:
            self.cloud.hand_over(instance, copy, overlaps=True)
            return copy
        overlaps = action.overlaps and copy.ready_us > self.now_us
        self.cloud.hand_over(instance, copy, overlaps=overlaps)
        if not overlaps:
            self._stop(instance, action.serves_s)
        return copy

    def _start(self, operator: str, host: VirtualHost, activity: str) -> VirtualInstance:
        instance = self.cloud.new_instance(operator, host, self.now_us)
        if self.job:
            self.job.start(instance)
        waits = self._lets_in and instance.ready_us > self.now_us
        ready_us = LATER_US if waits else instance.ready_us
        self.network.add_server(instance.row, instance.number, host.number, ready_us)
        pause_us = self._pause_us(operator, self.cloud.calibration.pause_on_start_s)
        if not (self.deploying or self.job):
            self._pause(instance, max(self.now_us, instance.ready_us - pause_us), instance.ready_us)
        self.cloud.log(self.now_us, activity, operator, instance.name, host.name)
        return instance

    def _stop(self, instance: VirtualInstance, serves_s: float) -> None:
        instance.stopped_us = self.now_us
        self._call_off(instance)
        if self.job:
            self.job.stop(instance)
            return
        if serves_s:
            instance.killed_us = self.now_us + us(serves_s)
            return
        self.network.close_server(instance.row, instance.number, self.now_us)
        pause_us = self._pause_us(instance.operator, self.cloud.calibration.pause_on_stop_s)
        if instance.ready_us <= self.now_us:
            self._pause(instance, self.now_us, self.now_us + pause_us)

    def _call_off(self, instance: VirtualInstance) -> None:
        """Undo what was to come with an instance that has ended before it was ready."""
        if instance.ready_us < self.now_us:  # at that time itself others may still wait for it
            return
        self.cloud.undo_migrations(instance, self.now_us)
        for row, from_us, until_us, _ in self.cloud.call_off_pauses(instance.number, self.now_us):
            if until_us > from_us:
                self.network.call_off(row, from_us, until_us)

    def _pause_us(self, operator: str, usual_s: float) -> int:
        return us(self.cloud.calibration.operator_pause_s.get(operator, usual_s))

    def _pause(self, instance: VirtualInstance, from_us: int, until_us: int) -> None:
        if until_us > from_us:
            self.network.pause(instance.row, from_us, until_us)
        self.cloud.pauses_us.append((instance.row, from_us, until_us, instance.number))

    def _set_speeds(self) -> None:
        """Slow down instances on hosts whose reserved CPU exceeds their cores, or of a hot job."""
        operators, vcpus = self.config.topology.operator, self.config.flavor.vcpus
        speed_permille = self.network.state.servers[:, :, kernel.SPEED_PERMILLE]
        full = self.job.speed_permille(self.now_us) if self.job else USUAL_PERMILLE
        demand: dict[int, float] = {}
        for instance in self.fleet.instances.values():
            packed = self.job and self.job.settings.packs
            cores = 0.0 if packed else operators[instance.operator].cpu_cores
            demand[instance.host] = demand.get(instance.host, 0.0) + cores
        crowded = {host for host, cores in demand.items() if cores > vcpus}
        if not crowded and (speed_permille[self.network.slots_in_use()] == full).all():
            return
        for instance in self.fleet.instances.values():
            share = vcpus / demand[instance.host] if instance.host in crowded else 1.0
            slot = self.network.slot(instance.row, instance.number)
            speed_permille[instance.row, slot] = max(1, round(full * share))

    # ------------------------------------------------------------- recording

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = self.network.arrays()
        if self.job:
            arrays["job"] = packed(self.job.to_plain(), SNAPSHOT_VERSION)
        return arrays

    def load_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.network.load(arrays)
        if self.job:
            self.job.load_plain(unpacked(arrays["job"], SNAPSHOT_VERSION))
