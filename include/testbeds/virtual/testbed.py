"""The testbed protocol on virtual time, without the queues."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from include.model.decision import Decision, LeaseHost, Outcome
from include.model.observation import Observation
from include.testbeds.actions import Actuator, carry_out
from include.testbeds.base import ACTS, Testbed, TestbedConfig
from include.testbeds.columns import as_columns
from include.testbeds.snapshots import packed, unpacked
from include.testbeds.virtual.cloud import VirtualCloud, us
from include.testbeds.virtual.fleet import VirtualFleet, VirtualHost, VirtualInstance
from include.testbeds.virtual.monitor import VirtualMonitor
from include.testbeds.virtual.tables import ARRIVAL

SNAPSHOT_VERSION = 13
NEVER_US = 2**63 - 1


@dataclass(slots=True)
class VirtualTestbed(Testbed, Actuator[VirtualHost, VirtualInstance]):
    """Hosts, instances and queues that exist in memory only; time passes when it is told to."""

    config: TestbedConfig
    cloud: VirtualCloud = field(init=False)
    monitor: VirtualMonitor = field(init=False)
    now_us: int = 0
    _gaps_us: np.ndarray = field(init=False)
    _arrivals: list[tuple[float, str, float, int]] = field(default_factory=list)
    _published: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.build()
        self._gaps_us = self.gaps_us()
        self._published = [0] * len(self.config.topology.sources)

    @property
    def now_s(self) -> float:
        return self.now_us / 1e6

    @property
    def fleet(self) -> VirtualFleet:
        return self.cloud.fleet

    @property
    def operator_names(self) -> tuple[str, ...]:
        return self.config.topology.operator_names

    # ------------------------------------------------- what the queues have to do

    @abstractmethod
    def build(self) -> None:
        """Make cloud, queues and monitor."""

    @abstractmethod
    def move(self) -> None:
        """Let items flow up to now."""

    @abstractmethod
    def drained(self) -> dict[int, int]:
        """End times of drained instances that were not removed yet, by number."""

    @abstractmethod
    def remove_drained(self) -> None:
        """Remove drained instances, and released hosts without instances."""

    @abstractmethod
    def fail(self, who: VirtualHost | VirtualInstance) -> None:
        """Carry out a host loss, a boot failure or an instance crash."""

    @abstractmethod
    def read(self, period_us: int, *, missed: bool) -> list[int]:
        """End a monitoring period; returns the items that each source has published so far."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """The state of the queues, for a snapshot."""

    @abstractmethod
    def load_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from :meth:`arrays`."""

    def next_stop_us(self) -> int:
        """Next time at which the queues need :meth:`stopped`."""
        return NEVER_US

    def stopped(self) -> None:
        """Called at :meth:`next_stop_us`, after failures and before a reading of that time."""
        return

    # ------------------------------------------------------------------ time

    def advance_to(self, t_s: float) -> None:
        target_us = us(t_s)
        if target_us < self.now_us:
            raise ValueError(f"time cannot go back from {self.now_s:g} s to {t_s:g} s")
        period_us = us(self.config.monitor_every_s)
        while self.now_us < target_us:
            reading_us = (self.now_us // period_us + 1) * period_us
            failure = self._next_failure()
            failure_us = max(failure[0], self.now_us) if failure else target_us
            stop_us = self.next_stop_us()
            self.now_us = min(target_us, reading_us, failure_us, stop_us)
            self.move()
            if failure and failure[0] <= self.now_us:
                self.remove_drained()  # what has ended by now does not fail
                failure = self._next_failure()
            while failure and failure[0] <= self.now_us:
                self.fail(failure[1])
                failure = self._next_failure()
            if self.now_us == stop_us:
                self.stopped()
            if self.now_us == reading_us:
                self._read(period_us)

    def _next_failure(self) -> tuple[int, VirtualHost | VirtualInstance] | None:
        """Time and subject of the next failure or crash; hosts first on a tie."""
        faults, instances = self.cloud.faults, self.fleet.instances.values()
        rates = (faults.host_losses_per_hour, faults.instance_crashes_per_hour)
        if not any(rates) and not faults.host_boot_failure:
            return None
        due: list[tuple[int, VirtualHost | VirtualInstance]] = [
            *((host.fails_us, host) for host in self.fleet.leased() if host.fails_us is not None),
            *((each.crashes_us, each) for each in instances if each.crashes_us is not None),
        ]
        return min(due, key=lambda failure: failure[0], default=None)

    def gaps_us(self) -> np.ndarray:
        """Periods in which the monitor does not answer, shape (n, 2)."""
        faults = self.cloud.faults
        rate, length_s = faults.monitoring_gaps_per_hour, faults.monitoring_gap_s
        end_us = us(self.config.duration_s)
        gaps = [*self.cloud.draws.periods("gap", "monitor", rate, length_s, end_us)]
        return np.array(gaps, dtype=np.int64).reshape(-1, 2)

    def _read(self, period_us: int) -> None:
        self.remove_drained()
        now_us, gaps_us = self.now_us, self._gaps_us
        missed = bool(gaps_us.size and ((gaps_us[:, 0] < now_us) & (now_us <= gaps_us[:, 1])).any())
        if missed and not self.monitor.reading.missed:
            self.cloud.events.append((self.now_s, "monitoring_gap", "monitor", "no answer"))
        published = self.read(period_us, missed=missed)
        since_s = self.now_s - self.config.monitor_every_s
        for i, source in enumerate(self.config.topology.sources):
            items = published[i] - self._published[i]
            level = self.config.levels_of[source.name].at(since_s)
            self._arrivals.append((self.now_s, source.name, level, items))
        self._published = published

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        outcomes = self.apply(decision)
        self.cloud.begin()
        return outcomes

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        self.remove_drained()
        return carry_out(decision, self)

    def lease(self, action: LeaseHost) -> VirtualHost:
        return self.cloud.lease(action, self.now_us)

    def prolong(self, host: VirtualHost) -> None:
        self.cloud.prolong(host, self.now_us)

    def release(self, host: VirtualHost) -> None:
        self.cloud.release(host, self.now_us)

    # --------------------------------------------------------------- reading

    def observe(self, by: str = ACTS) -> Observation:
        """Return the last reading and reset the observer's counters, unless it was missed."""
        observation = self.look(by)
        if not self.monitor.reading.missed:
            self.monitor.count_anew(by)
        return observation

    def look(self, by: str = ACTS) -> Observation:
        """Return the last reading, with the current hosts and instances.

        Only the acting observer removes drained instances; for others they are left out.
        """
        gone: dict[int, int] = {}
        if by == ACTS:
            self.remove_drained()
        else:
            gone = self.drained()
        now_us, monitor = self.now_us, self.monitor
        monitor.catch_up()
        paused = self.cloud.paused(now_us)
        missed, sources = monitor.reading.missed, self.config.topology.sources
        published = zip((source.name for source in sources), self._published, strict=True)
        here = [
            instance for instance in self.fleet.instances.values() if instance.number not in gone
        ]
        held = {instance.host for instance in here}
        up_us, starts, changes, down_us = self.cloud.job_starts(now_us)
        hosts = (host for host in self.fleet.leased() if not host.releasing or host.number in held)
        return Observation(
            now_s=self.now_s,
            operators={} if missed else monitor.operator_samples(by),
            hosts={host.name: monitor.host_sample(host, now_us) for host in hosts},
            instances={
                instance.name: monitor.instance_sample(instance, now_us) for instance in here
            },
            published_in_all={} if missed else dict(published),
            operator_pauses={
                name: (paused[row][0], paused[row][1] / 1e6)
                for name, row in self.cloud.rows.items()
                if row in paused
            },
            job_started_s=up_us / 1e6,
            job_starts=starts,
            job_changes=changes,
            job_paused_in_all_s=down_us / 1e6,
        )

    # ------------------------------------------------------------- recording

    def take_measurements(self) -> dict[str, dict[str, Any]]:
        tables = self.monitor.take_tables() | self.cloud.take_tables(self.now_us)
        if self._arrivals:
            tables["arrival"] = as_columns(self._arrivals, ARRIVAL)
        self._arrivals = []
        return tables

    def leases(self) -> dict[str, list[Any]]:
        return self.cloud.leases(self.now_us)

    def take_ended_leases(self) -> dict[str, list[Any]]:
        return self.cloud.take_ended_leases()

    def snapshot(self) -> dict[str, np.ndarray]:
        plain = {
            "now_us": self.now_us,
            "published": self._published,
            "cloud": self.cloud.to_plain(),
            "monitor": self.monitor.to_plain(),
        }
        return {"plain": packed(plain, SNAPSHOT_VERSION), **self.arrays()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        plain = unpacked(arrays["plain"], SNAPSHOT_VERSION)
        self.now_us = self.cloud.recorded_us = plain["now_us"]
        self._published = plain["published"]
        self.cloud.load_plain(plain["cloud"])
        self.load_arrays(arrays)
        self.monitor.load_plain(plain["monitor"])

    def close(self) -> None:
        return  # nothing outlives the process
