"""The testbed protocol on virtual time: what is the same whatever the queues are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from include.model.decision import Decision, LeaseHost, MigrateInstance, Outcome
from include.model.observation import Observation
from include.testbeds.actions import carry_out
from include.testbeds.base import ACTS, TestbedConfig
from include.testbeds.columns import as_columns
from include.testbeds.snapshots import packed, unpacked
from include.testbeds.virtual.cloud import VirtualCloud, us
from include.testbeds.virtual.fleet import (
    VirtualFleet,
    VirtualHost,
    VirtualInstance,
    next_failure,
)
from include.testbeds.virtual.monitor import VirtualMonitor
from include.testbeds.virtual.tables import ARRIVAL

SNAPSHOT_VERSION = 7
NEVER_US = 2**63 - 1


@dataclass(slots=True)
class VirtualTestbed(ABC):
    """Hosts, instances and queues that exist in memory only; time passes when it is told to."""

    config: TestbedConfig
    cloud: VirtualCloud = field(init=False)
    monitor: VirtualMonitor = field(init=False)
    now_us: int = 0
    _gaps_us: np.ndarray = field(init=False)
    _arrivals: list[tuple[float, str, float, int]] = field(default_factory=list)
    _published: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Build the empty world at second 0."""
        self.build()
        self._gaps_us = self.gaps_us()
        self._published = [0] * len(self.config.topology.sources)

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        return self.now_us / 1e6

    @property
    def fleet(self) -> VirtualFleet:
        return self.cloud.fleet

    @property
    def operator_names(self) -> tuple[str, ...]:
        """Operators that can be started."""
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
        """Instances that have ended and were not taken away yet, with the time of their end."""

    @abstractmethod
    def settle(self) -> None:
        """Take away instances that have drained, and hosts whose last instance has."""

    @abstractmethod
    def fail(self, who: VirtualHost | VirtualInstance) -> None:
        """A host is lost, a boot fails, or an instance crashes."""

    @abstractmethod
    def read(self, period_us: int, *, missed: bool) -> list[int]:
        """A monitoring period ends; returns what each source has published so far."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """The state of the queues, for a snapshot."""

    @abstractmethod
    def load_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from :meth:`arrays`."""

    def next_stop_us(self) -> int:
        """When time has to stop next for a reason of the queues' own."""
        return NEVER_US

    def stopped(self) -> None:
        """It has; failures that are due have happened, the monitor has not read yet."""
        return

    # ------------------------------------------------------------------ time

    def advance_to(self, t_s: float) -> None:
        """Let items flow until ``t_s``, with monitor readings and faults at their times."""
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
            while failure and failure[0] <= self.now_us:
                self.fail(failure[1])
                failure = self._next_failure()
            if self.now_us == stop_us:
                self.stopped()
            if self.now_us == reading_us:
                self._read(period_us)

    def _next_failure(self) -> tuple[int, VirtualHost | VirtualInstance] | None:
        faults = self.cloud.faults
        rates = (faults.host_losses_per_hour, faults.instance_crashes_per_hour)
        return next_failure(self.fleet) if any(rates) or faults.host_boot_failure else None

    def gaps_us(self) -> np.ndarray:
        """Periods in which the monitor does not answer, shape (n, 2)."""
        faults = self.cloud.faults
        return self.cloud.draws.periods_us(
            "gap",
            "monitor",
            faults.monitoring_gaps_per_hour,
            faults.monitoring_gap_s,
            us(self.config.duration_s),
        )

    def _read(self, period_us: int) -> None:
        self.settle()
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
        """Carry out the first decision; hosts and instances are up before time starts."""
        outcomes = self.apply(decision)
        self.cloud.begin()
        return outcomes

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out each action in order; unknown hosts and instances are refused."""
        self.settle()
        return carry_out(decision, self)

    def lease(self, action: LeaseHost) -> VirtualHost:
        return self.cloud.lease(action, self.now_us)

    @abstractmethod
    def start(self, operator: str, host: VirtualHost) -> VirtualInstance:
        """Start an instance."""

    @abstractmethod
    def stop(self, one: VirtualInstance, serves_s: float) -> None:
        """Stop an instance gracefully, or, where items are followed, kill it after ``serves_s``."""

    @abstractmethod
    def migrate(
        self, one: VirtualInstance, host: VirtualHost, action: MigrateInstance
    ) -> VirtualInstance:
        """Start a copy on a host and stop the instance as the action says; returns the copy."""

    def prolong(self, host: VirtualHost) -> None:
        """Pay for one more BTU."""
        self.cloud.prolong(host, self.now_us)

    def release(self, host: VirtualHost) -> None:
        """Give a host back once it is empty."""
        self.cloud.release(host, self.now_us)

    # --------------------------------------------------------------- reading

    def observe(self, by: str = ACTS) -> Observation:
        """A look from which on the monitor counts anew; one that it missed is none."""
        seen = self.look(by)
        if not self.monitor.reading.missed:
            self.monitor.count_anew(by)
        return seen

    def look(self, by: str = ACTS) -> Observation:
        """The last reading of the monitor, and the hosts and instances as they are now.

        Who only advises leaves everything as it is: what has ended is not taken away, only unseen.
        """
        gone: dict[int, int] = {}
        if by == ACTS:
            self.settle()
        else:
            gone = self.drained()
        now_us, monitor = self.now_us, self.monitor
        monitor.catch_up()
        missed, sources = monitor.reading.missed, self.config.topology.sources
        published = zip((one.name for one in sources), self._published, strict=True)
        here = [one for one in self.fleet.instances.values() if one.number not in gone]
        held = {one.host for one in here}
        hosts = (one for one in self.fleet.leased() if not one.releasing or one.number in held)
        return Observation(
            now_s=self.now_s,
            operators={} if missed else monitor.operator_samples(by),
            hosts={one.name: monitor.host_sample(one, now_us) for one in hosts},
            instances={one.name: monitor.instance_sample(one, now_us) for one in here},
            published_in_all={} if missed else dict(published),
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
        """The lease log without those taken, as columns; hosts that are still leased end now."""
        return self.cloud.leases(self.now_us)

    def take_ended_leases(self) -> dict[str, list[Any]]:
        """The lease log of hosts that have ended since the last call, and forget them."""
        return self.cloud.take_ended_leases()

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state. Take measurements first: rows are not part of it."""
        plain = {
            "now_us": self.now_us,
            "published": self._published,
            "cloud": self.cloud.to_plain(),
            "monitor": self.monitor.to_plain(),
        }
        return {"plain": packed(plain, SNAPSHOT_VERSION), **self.arrays()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a snapshot. Raises StoreError when another version wrote it."""
        plain = unpacked(arrays["plain"], SNAPSHOT_VERSION)
        self.now_us = plain["now_us"]
        self._published = plain["published"]
        self.cloud.load_plain(plain["cloud"])
        self.load_arrays(arrays)
        self.monitor.load_plain(plain["monitor"])

    def close(self) -> None:
        """Nothing outlives the process; there is nothing to give back."""
        return
