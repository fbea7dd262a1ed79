"""The testbed protocol over queues in steps and a cloud of hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from include.model.decision import Decision, MigrateInstance, Outcome
from include.model.observation import Observation
from include.testbeds.base import ACTS
from include.testbeds.flow.calibration import FlowCalibration, FlowFaults
from include.testbeds.flow.cloud import FlowCloud
from include.testbeds.flow.monitor import FlowMonitor
from include.testbeds.flow.queues import FluidQueues
from include.testbeds.flow.tenants import SUB_WINDOW_S, Tenants
from include.testbeds.virtual.cloud import us
from include.testbeds.virtual.draws import Draws
from include.testbeds.virtual.fleet import VirtualHost, VirtualInstance
from include.testbeds.virtual.testbed import VirtualTestbed


@dataclass(slots=True)
class FlowTestbed(VirtualTestbed):
    """Amounts instead of items.

    Queues move in whole steps: what is done in the middle of one counts from the next on.
    """

    cloud: FlowCloud = field(init=False)
    monitor: FlowMonitor = field(init=False)
    queues: FluidQueues = field(init=False)
    tenants: Tenants = field(init=False)

    def build(self) -> None:
        config, topology, draws = self.config, self.config.topology, Draws(self.config.seed)
        calibration = FlowCalibration.model_validate(config.calibration).complete(topology)
        faults = FlowFaults.model_validate(config.faults)
        names = topology.flow_order
        rows = {name: o for o, name in enumerate(names)}
        self.cloud = FlowCloud(config, calibration, faults, draws, rows)
        self.queues = FluidQueues(config, calibration, faults, draws, self.cloud, names)
        self.tenants = Tenants(topology, names, self.queues.edges)
        self.monitor = FlowMonitor.of(self.queues, self.tenants)

    # ------------------------------------------------------------------ time

    def next_stop_us(self) -> int:
        """The end of a sub-window of the tenants."""
        window_us = us(SUB_WINDOW_S)
        return (self.now_us // window_us + 1) * window_us

    def move(self) -> None:
        """Let amounts flow up to the last whole step."""
        self.queues.run_to(self.now_us // self.queues.step_us)

    def stopped(self) -> None:
        """A sub-window of the tenants is over."""
        self.tenants.end_sub_window(self.queues.state)

    def gaps_us(self) -> np.ndarray:
        """Periods in which the monitor does not answer: by chance, and those asked for."""
        asked_us = [(us(start_s), us(end_s)) for start_s, end_s in self.cloud.faults.outages]
        by_chance_us = VirtualTestbed.gaps_us(self)
        return np.concatenate([by_chance_us, np.array(asked_us, dtype=np.int64).reshape(-1, 2)])

    def read(self, period_us: int, *, missed: bool) -> list[int]:
        for start_s, end_s, cores in self.cloud.faults.cpu_spikes:
            if self.now_us - period_us < us(start_s) <= self.now_us:
                detail = f"{cores:g} cores of each for {end_s - start_s:g} s"
                self.cloud.events.append((start_s, "cpu_spike", "every host", detail))
        for at_s, down_s in self.cloud.faults.restarts:
            if self.now_us - period_us < us(at_s) <= self.now_us:
                detail = f"by itself, down for {down_s:g} s"
                self.cloud.events.append((at_s, "job_restart", "job", detail))
        self.monitor.read(self.now_us, period_us, self.fleet, missed=missed)
        published: list[int] = self.queues.published_items().tolist()
        return published

    def drained(self) -> dict[int, int]:
        return self.cloud.drained(self.now_us)

    def remove_drained(self) -> None:
        self.cloud.settle(self.now_us)

    def fail(self, who: VirtualHost | VirtualInstance) -> None:
        """A host is lost, a boot fails, or an instance crashes. Items stay in their queues."""
        self.queues.reorder()
        self.cloud.fail(who, self.now_us)

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        outcomes = VirtualTestbed.apply(self, decision)
        self.cloud.begin()
        self.cloud.calm()
        return outcomes

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        self.queues.reorder()
        outcomes = VirtualTestbed.apply(self, decision)
        self.cloud.restart_after_changes(self.now_us, decided=True)
        return outcomes

    def start(self, operator: str, host: VirtualHost) -> VirtualInstance:
        return self.cloud.start(operator, host, self.now_us)

    def stop(self, one: VirtualInstance, serves_s: float) -> None:
        """Stop an instance gracefully: amounts know no single item that could be killed."""
        self.cloud.stop(one, self.now_us)

    def migrate(
        self, one: VirtualInstance, host: VirtualHost, action: MigrateInstance
    ) -> VirtualInstance:
        """Start a copy on a host and stop the instance once that is ready; returns the copy."""
        return self.cloud.migrate(one, host, self.now_us, overlaps=action.overlaps)

    # ----------------------------------------------------- reading and recording

    def look(self, by: str = ACTS) -> Observation:
        observation = VirtualTestbed.look(self, by)
        missed = self.monitor.reading.missed
        return replace(observation, tenants={} if missed else dict(self.tenants.samples))

    def arrays(self) -> dict[str, np.ndarray]:
        return {**self.queues.arrays(), **self.tenants.arrays()}

    def load_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.queues.load(arrays)
        self.tenants.load(arrays)
