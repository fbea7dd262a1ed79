"""The testbed protocol over queues that are followed item by item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from include.model.decision import Decision, MigrateInstance, Outcome
from include.testbeds.simulated import kernel
from include.testbeds.simulated.build import build_network
from include.testbeds.simulated.monitor import SimulatedMonitor
from include.testbeds.simulated.network import QueueingNetwork
from include.testbeds.virtual.calibration import VirtualCalibration, VirtualFaults
from include.testbeds.virtual.cloud import VirtualCloud, us
from include.testbeds.virtual.fleet import VirtualHost, VirtualInstance
from include.testbeds.virtual.testbed import NEVER_US, VirtualTestbed


@dataclass(slots=True)
class SimulatedTestbed(VirtualTestbed):
    """Hosts, instances and every single item in memory."""

    monitor: SimulatedMonitor = field(init=False)
    network: QueueingNetwork = field(init=False)

    def build(self) -> None:
        """Make cloud, queues and monitor."""
        config = self.config
        calibration = VirtualCalibration.model_validate(config.calibration)
        calibration = calibration.complete(config.topology)
        faults = VirtualFaults.model_validate(config.faults)
        self.network = network = build_network(
            config.topology, calibration, config.levels_of, config.duration_s, config.seed
        )
        rows = {name: o for o, name in enumerate(network.names)}
        self.cloud = VirtualCloud(config, calibration, faults, network.draws, rows)
        self.monitor = SimulatedMonitor.of(network, config.flavor.capacity)

    # ------------------------------------------------------------------ time

    def move(self) -> None:
        """Let items flow up to now."""
        self.network.advance(self.now_us)

    def read(self, period_us: int, *, missed: bool) -> list[int]:
        """A monitoring period ends; returns what each source has published so far."""
        self.monitor.read(self.now_us, period_us, self.fleet, missed=missed)
        sources = self.network.state.nodes[len(self.network.names) :]
        published: list[int] = sources[:, kernel.NUMBERED].tolist()
        return published

    def next_stop_us(self) -> int:
        """When the next instance that serves on is killed, or its copy ready."""
        ends_us = (
            one.stopped_us if one.successor else one.killed_us
            for one in self.fleet.instances.values()
        )
        return min((t_us for t_us in ends_us if t_us is not None), default=NEVER_US)

    def stopped(self) -> None:
        """Kill the instances whose time to serve on is over; their items go back.

        Those whose copies are ready take no new items.
        """
        for one in list(self.fleet.instances.values()):
            if one.successor and one.stopped_us == self.now_us:
                one.successor = 0
                self._stop(one, 0.0)
            elif one.killed_us is not None and one.killed_us <= self.now_us:
                self.network.crash_server(one.row, one.number, self.now_us)
                del self.fleet.instances[one.number]
        self.cloud.end_empty({}, self.now_us)
        self._share_cpu()

    def drained(self) -> dict[int, int]:
        """Instances that have ended and were not taken away yet, with the time of their end."""
        drain_us = us(self.cloud.calibration.drain_s)
        found: dict[int, int] = {}
        for one in self.fleet.instances.values():
            if one.stopped_us is not None and one.killed_us is None:
                server = self.network.state.servers[one.row, self.network.slot(one.row, one.number)]
                end_us = max((one.stopped_us or 0) + drain_us, int(server[kernel.DONE_US]))
                if end_us <= self.now_us and not server[kernel.BUSY]:
                    found[one.number] = end_us
        return found

    def settle(self) -> None:
        """Take away instances that have drained, and hosts whose last instance has."""
        ended_us: dict[int, int] = {}
        for number, end_us in self.drained().items():
            one = self.fleet.instances.pop(number)
            self.network.remove_server(one.row, number)
            ended_us[one.host] = max(end_us, ended_us.get(one.host, 0))
        self.cloud.end_empty(ended_us, self.now_us)

    def fail(self, who: VirtualHost | VirtualInstance) -> None:
        """A host is lost, a boot fails, or an instance crashes. Items go back to their queues."""
        if isinstance(who, VirtualInstance):
            lost = self.network.crash_server(who.row, who.number, self.now_us)
            del self.fleet.instances[who.number]
            self.cloud.undo_migrations(who, self.now_us)
            detail = "its item was queued again" if lost else "it was idle"
            self.cloud.events.append((self.now_s, "instance_crash", who.name, detail))
            return
        gone = self.fleet.on_host(who.number)
        lost_items = 0
        for one in gone:
            lost_items += self.network.crash_server(one.row, one.number, self.now_us)
            del self.fleet.instances[one.number]
            self.cloud.undo_migrations(one, self.now_us)
        who.ended_us = self.now_us
        detail = f"{len(gone)} instances lost, {lost_items} items queued again"
        self.cloud.events.append((self.now_s, who.fails_as, who.name, detail))

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out the first decision; hosts and instances are up before time starts."""
        outcomes = VirtualTestbed.deploy(self, decision)
        self.network.state.servers[:, :, kernel.READY_US] = 0
        self.network.state.free_us[:] = 0
        return outcomes

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out each action in order; unknown hosts and instances are refused."""
        outcomes = VirtualTestbed.apply(self, decision)
        self._share_cpu()
        return outcomes

    def start(self, operator: str, host: VirtualHost) -> VirtualInstance:
        return self._start(operator, host, "upscaling")

    def stop(self, one: VirtualInstance, serves_s: float) -> None:
        """Stop an instance gracefully, or kill it after ``serves_s``."""
        self._stop(one, serves_s)
        self.cloud.log(self.now_us, "downscaling", one.operator, one.name, f"host-{one.host}")

    def migrate(
        self, one: VirtualInstance, host: VirtualHost, action: MigrateInstance
    ) -> VirtualInstance:
        """Start a copy on a host and stop the instance as the action says; returns the copy."""
        copy = self._start(one.operator, host, "migration")
        overlaps = action.overlaps and copy.ready_us > self.now_us
        self.cloud.hand_over(one, copy, overlaps=overlaps)
        if not overlaps:
            self._stop(one, action.serves_s)
        return copy

    def _start(self, operator: str, host: VirtualHost, activity: str) -> VirtualInstance:
        one = self.cloud.new_instance(operator, host, self.now_us)
        self.network.add_server(one.row, one.number, host.number, one.ready_us)
        if self.cloud.calibration.pause_on_start_s and self.now_us:
            pause_us = one.ready_us - us(self.cloud.calibration.pause_on_start_s)
            self.network.pause(one.row, max(self.now_us, pause_us), one.ready_us)
        self.cloud.log(self.now_us, activity, operator, one.name, host.name)
        return one

    def _stop(self, one: VirtualInstance, serves_s: float) -> None:
        one.stopped_us = self.now_us
        self.cloud.undo_migrations(one, self.now_us)
        if serves_s:
            one.killed_us = self.now_us + us(serves_s)
            return
        self.network.close_server(one.row, one.number, self.now_us)
        if self.cloud.calibration.pause_on_stop_s and one.ready_us <= self.now_us:
            end_us = self.now_us + us(self.cloud.calibration.pause_on_stop_s)
            self.network.pause(one.row, self.now_us, end_us)

    def _share_cpu(self) -> None:
        """Instances of a host whose CPU is promised twice run at their share of it."""
        operators, vcpus = self.config.topology.operator, self.config.flavor.vcpus
        speed_permille = self.network.state.servers[:, :, kernel.SPEED_PERMILLE]
        demand: dict[int, float] = {}
        for one in self.fleet.instances.values():
            cores = operators[one.operator].cpu_cores
            demand[one.host] = demand.get(one.host, 0.0) + cores
        crowded = {host for host, cores in demand.items() if cores > vcpus}
        if not crowded and (speed_permille[self.network.slots_in_use()] == 1000).all():
            return
        for one in self.fleet.instances.values():
            share = min(1.0, vcpus / demand[one.host])
            slot = self.network.slot(one.row, one.number)
            speed_permille[one.row, slot] = max(1, round(1000 * share))

    # ------------------------------------------------------------- recording

    def arrays(self) -> dict[str, np.ndarray]:
        """The state of the queues, for a snapshot."""
        return self.network.arrays()

    def load_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from :meth:`arrays`."""
        self.network.load(arrays)
