"""The testbed protocol over queues in steps and a cloud of hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from include.model.decision import Decision, Outcome
from include.model.observation import Observation
from include.testbeds.base import Scene
from include.testbeds.columns import as_columns
from include.testbeds.flow.calibration import Calibration, Faults
from include.testbeds.flow.cloud import Cloud
from include.testbeds.flow.monitor import Monitor
from include.testbeds.flow.samples import Samples
from include.testbeds.flow.tenants import SUB_WINDOW_S, Tenants
from include.testbeds.flow.world import World
from include.testbeds.simulated.cloud import us
from include.testbeds.simulated.draws import Draws
from include.testbeds.simulated.tables import ARRIVAL
from include.testbeds.snapshots import packed, unpacked

SNAPSHOT_VERSION = 1


@dataclass(slots=True)
class FlowTestbed:
    """Hosts, instances and queues that exist in memory only; time passes when it is told to.

    Queues move in whole steps: what is done in the middle of one counts from the next on.
    """

    scene: Scene
    faults: Faults = field(init=False)
    cloud: Cloud = field(init=False)
    world: World = field(init=False)
    monitor: Monitor = field(init=False)
    tenants: Tenants = field(init=False)
    now_us: int = 0
    _gaps_us: np.ndarray = field(init=False)
    _arrivals: list[tuple[float, str, float, int]] = field(default_factory=list)
    _published: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Build the empty world at second 0."""
        scene, topology, draws = self.scene, self.scene.topology, Draws(self.scene.seed)
        calibration = Calibration.model_validate(scene.calibration).complete(topology)
        self.faults = Faults.model_validate(scene.faults)
        names = topology.in_flow_order()
        rows = {name: o for o, name in enumerate(names)}
        self.cloud = Cloud(scene, calibration, self.faults, draws, rows)
        self.world = World(scene, calibration, self.faults, draws, self.cloud, names)
        self.tenants = Tenants(topology, names, self.world.edges)
        self.monitor = Monitor(self.world, Samples(names, calibration, draws), self.tenants)
        self._gaps_us = self._gaps()
        self._published = [0] * len(topology.sources)

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
        period_us, window_us = us(self.scene.monitor_every_s), us(SUB_WINDOW_S)
        while self.now_us < target_us:
            reading_us = (self.now_us // period_us + 1) * period_us
            window_end_us = (self.now_us // window_us + 1) * window_us
            failure = self._next_failure()
            failure_us = max(failure[0], self.now_us) if failure else target_us
            self.now_us = min(target_us, reading_us, window_end_us, failure_us)
            self.world.run_to(self.now_us // self.world.step_us)
            while failure and failure[0] <= self.now_us:
                self.world.reorder()
                self.cloud.fail(failure[1], self.now_us)
                failure = self._next_failure()
            if self.now_us == window_end_us:
                self.tenants.end_sub_window(self.world.state)
            if self.now_us == reading_us:
                self._read(period_us)

    def _next_failure(self) -> tuple[int, Any] | None:
        rates = (self.faults.host_losses_per_hour, self.faults.instance_crashes_per_hour)
        may_fail = any(rates) or self.faults.host_boot_failure
        return self.cloud.fleet.next_failure() if may_fail else None

    def _gaps(self) -> np.ndarray:
        """Periods without statistics, shape (n, 2): by chance, and those that were asked for."""
        faults = self.faults
        gaps_us = self.cloud.draws.periods_us(
            "gap",
            "monitor",
            faults.monitoring_gaps_per_hour,
            faults.monitoring_gap_s,
            us(self.scene.duration_s),
        )
        outages_us = [(us(start_s), us(end_s)) for start_s, end_s in faults.outages]
        return np.concatenate([gaps_us, np.array(outages_us, dtype=np.int64).reshape(-1, 2)])

    def _read(self, period_us: int) -> None:
        self.cloud.settle(self.now_us)
        now_us, gaps_us, events = self.now_us, self._gaps_us, self.cloud.events
        missed = bool(((gaps_us[:, 0] < now_us) & (now_us <= gaps_us[:, 1])).any())
        if missed and not self.monitor.reading.missed:
            events.append((self.now_s, "monitoring_gap", "monitor", "no answer"))
        for start_s, end_s, cores in self.faults.cpu_spikes:
            if now_us - period_us < us(start_s) <= now_us:
                detail = f"{cores:g} cores of each for {end_s - start_s:g} s"
                events.append((start_s, "cpu_spike", "every host", detail))
        self.monitor.read(now_us, period_us, self.cloud.fleet, missed=missed)
        published = self.world.published_items().tolist()
        for i, source in enumerate(self.scene.topology.sources):
            level = self.scene.levels_of[source.name].at(self.now_s - self.scene.monitor_every_s)
            items = published[i] - self._published[i]
            self._arrivals.append((self.now_s, source.name, level, items))
        self._published = published

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out the first decision; hosts and instances are up before time starts."""
        return self.cloud.deploy(decision)

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out each action in order; unknown hosts and instances are refused."""
        self.world.reorder()
        return self.cloud.apply(decision, self.now_us)

    # --------------------------------------------------------------- reading

    def observe(self) -> Observation:
        """The last reading of the monitor, and the hosts and instances as they are now."""
        self.cloud.settle(self.now_us)
        missed, fleet, now_us = self.monitor.reading.missed, self.cloud.fleet, self.now_us
        hosts = [self.monitor.host_sample(host, now_us) for host in fleet.leased()]
        running = [self.monitor.instance_sample(one, now_us) for one in fleet.instances.values()]
        return Observation(
            now_s=self.now_s,
            operators={} if missed else self.monitor.operator_samples(),
            hosts={sample.host: sample for sample in hosts},
            instances={sample.instance: sample for sample in running},
            tenants={} if missed else dict(self.tenants.samples),
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
            "cloud": self.cloud.to_plain(),
            "monitor": self.monitor.to_plain(),
        }
        return {
            "plain": packed(plain, SNAPSHOT_VERSION),
            **self.world.arrays(),
            **self.tenants.arrays(),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a snapshot. Raises StoreError when another version wrote it."""
        plain = unpacked(arrays["plain"], SNAPSHOT_VERSION)
        self.now_us = plain["now_us"]
        self._published = plain["published"]
        self.cloud.load_plain(plain["cloud"])
        self.world.load(arrays)
        self.tenants.load(arrays)
        self.monitor.load_plain(plain["monitor"])

    def close(self) -> None:
        """Nothing outlives the process; there is nothing to give back."""
