"""What the monitor of the fluid testbed reads every period, and the columns it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from include.model.observation import HostSample, InstanceSample, OperatorSample, TenantSample
from include.model.utility import utility
from include.testbeds.columns import Coded, as_columns
from include.testbeds.flow.arrays import F64, I64, R_DONE_S, R_INSTANCE, R_OPERATOR
from include.testbeds.flow.samples import Samples
from include.testbeds.flow.tenants import Tenants
from include.testbeds.flow.world import World
from include.testbeds.simulated.fleet import Fleet, Host, Instance
from include.testbeds.simulated.samples import host_sample, instance_sample
from include.testbeds.simulated.tables import (
    Taken,
    hosts_table,
    instance_names,
    instances_table,
    queue_table,
)

LAST_DURATIONS = 5
"""N of Algorithm 1: how many recorded durations a controller sees."""
NOISE_READINGS, NOISE_WIDTH = 32, 1024


@dataclass(slots=True)
class Reading:
    """The last reading; empty when the monitor did not answer (``missed``)."""

    waiting: list[int] = field(default_factory=list)
    capacity: list[float | None] = field(default_factory=list)
    instance_cpu: dict[int, float] = field(default_factory=dict)
    """Share of a core, by number."""
    host: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    """Shares of CPU and memory, and runnable threads, by number."""
    missed: bool = False


@dataclass(slots=True)
class Monitor:
    """Reads queues and fleet; keeps measured columns until they are taken."""

    world: World
    samples: Samples
    tenants: Tenants
    reading: Reading = field(default_factory=Reading)
    counted: np.ndarray = field(init=False)
    """(2, operators): items that arrived and were completed, at the last reading."""
    observed: np.ndarray = field(init=False)
    """The same, when somebody last observed."""
    _durations_ms: list[tuple[float, ...]] = field(init=False)
    _rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    _noise_block: int = -1
    _noise_rows: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    _memory_mb: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing read."""
        operators = self.world.scene.topology.operator
        self._memory_mb = np.array([operators[name].memory_mb for name in self.world.names])
        none = np.zeros((2, len(self.world.names)), dtype=np.int64)
        self.counted, self.observed = none, none
        self._durations_ms = [()] * len(self.world.names)
        self.reading.waiting = [0] * len(self.world.names)
        self.reading.capacity = [None] * len(self.world.names)

    # ---------------------------------------------------------------- reading

    def read(self, now_us: int, period_us: int, fleet: Fleet, *, missed: bool) -> None:
        """One monitoring period ends now.

        Items are recorded by the operators themselves whether or not the monitor answers; a
        missed reading loses queues, utilisation and tenants.
        """
        self._record(*self.world.take_rows())
        used_s, host_used_s = self.world.take_used()
        sinks = self.world.take_sinks()
        if missed:
            self.reading = Reading(self.reading.waiting, self.reading.capacity, missed=True)
            return
        self._read_queues(now_us, fleet)
        period_s = period_us / 1e6
        turn = now_us // period_us
        self._read_utilisation(now_us, turn, fleet, used_s / period_s, host_used_s / period_s)
        if self.world.scene.topology.tenants:
            self.tenants.read(now_us / 1e6, sinks)
            self._rows.setdefault("tenant", []).append(
                (now_us, [self._worth(sample) for sample in self.tenants.samples.values()])
            )

    def _record(self, rows: I64, values: F64) -> None:
        if not len(rows):
            return
        duration_ms, wait_ms, age_ms = self.samples.durations(rows, values)
        operator = rows[:, R_OPERATOR]
        done_s = values[:, R_DONE_S]
        instance = rows[:, R_INSTANCE]
        self._rows.setdefault("processing_duration", []).append(
            (done_s, operator, instance, duration_ms, wait_ms, age_ms)
        )
        bounds = np.searchsorted(operator, np.arange(len(self.world.names) + 1)).tolist()
        for o, (first, end) in enumerate(pairwise(bounds)):
            if end > first:
                recent = duration_ms[max(first, end - LAST_DURATIONS) : end].tolist()
                self._durations_ms[o] = (*self._durations_ms[o], *recent)[-LAST_DURATIONS:]

    def _read_queues(self, now_us: int, fleet: Fleet) -> None:
        size = len(self.world.names)
        running = [one for one in fleet.instances.values() if one.stopped_us is None]
        started = np.bincount([one.operator for one in running], minlength=size)
        ready = np.bincount(
            [one.operator for one in running if one.ready_us <= now_us], minlength=size
        )
        waiting, counted = self.world.waiting_items(), self.world.whole_items()
        arrived, completed = counted - self.counted
        self.counted = counted
        self.reading = Reading(waiting.tolist())
        self._rows.setdefault("queue", []).append(
            (now_us, waiting, arrived, completed, started, ready)
        )

    def _read_utilisation(
        self,
        now_us: int,
        turn: int,
        fleet: Fleet,
        used: np.ndarray,
        host_used: np.ndarray,
    ) -> None:
        ready = [one for one in fleet.instances.values() if one.ready_us <= now_us]
        number = np.array([one.number for one in ready], dtype=np.int64)
        operator = np.array([one.operator for one in ready], dtype=np.int64)
        host = np.array([one.host for one in ready], dtype=np.int64)
        cpu, busy = used[number].T
        cpu = (cpu + self._noise(turn, 0, number)).clip(0, 1).round(4)
        highest = np.full(len(self.world.names), -1.0)
        np.maximum.at(highest, operator, busy.clip(0, 1).round(4))
        self.reading.capacity = [None if share < 0 else share for share in highest.tolist()]
        self.reading.instance_cpu = dict(zip(number.tolist(), cpu.tolist(), strict=True))
        self._rows.setdefault("instance_utilisation", []).append(
            (now_us, number, operator, host, cpu)
        )
        up = np.array([one.number for one in fleet.leased() if one.up_us <= now_us], dtype=int)
        held = fleet.instances.values()
        on, of = [one.host for one in held], [one.operator for one in held]
        flavor, size = self.world.scene.flavor, len(fleet.hosts) + 1
        memory = np.bincount(on, self._memory_mb[of], size)[up] / flavor.capacity.memory_mb
        instances = np.bincount(on, minlength=size)[up]
        cores, runnable = host_used[up].T
        host_cpu = (cores / flavor.vcpus + self._noise(turn, 1, up)).clip(0, 1).round(4)
        memory, runnable = memory.round(4), runnable.round(3)
        shares = zip(host_cpu.tolist(), memory.tolist(), runnable.tolist(), strict=True)
        self.reading.host = dict(zip(up.tolist(), shares, strict=True))
        self._rows.setdefault("host_utilisation", []).append(
            (now_us, up, host_cpu, memory, instances)
        )

    def _noise(self, turn: int, kind: int, number: np.ndarray) -> np.ndarray:
        """Measurement noise of a reading; a block of readings shares one generator."""
        block, row = divmod(turn, NOISE_READINGS)
        if block != self._noise_block:
            generator = self.world.draws.generator("monitor", "cpu", block)
            rows = generator.standard_normal((2 * NOISE_READINGS, NOISE_WIDTH))
            self._noise_block, self._noise_rows = block, rows * self.world.calibration.cpu_noise
        noise: np.ndarray = self._noise_rows[2 * row + kind, number % NOISE_WIDTH]
        return noise

    def _worth(self, sample: TenantSample) -> tuple[str, float, float, float, float, float]:
        """The row of a tenant; NaN where nothing left, zero worth without an intent."""
        values = (sample.latency_ms, sample.tail_latency_ms, sample.juice)
        latency_ms, tail_ms, juice = (np.nan if one is None else one for one in values)
        intent = self.tenants.intents[sample.tenant]
        if intent is None:
            return sample.tenant, latency_ms, tail_ms, juice, 0.0, 0.0
        worth = utility(intent, sample)
        now = np.nan if worth is None else worth
        return sample.tenant, latency_ms, tail_ms, juice, now, intent.max_utility

    # -------------------------------------------------------------- observing

    def operator_samples(self) -> dict[str, OperatorSample]:
        """The last reading of every operator; counts of items are those since the last call."""
        arrived, completed = (self.counted - self.observed).tolist()
        self.observed = self.counted
        row = {name: o for o, name in enumerate(self.world.names)}
        return {
            name: OperatorSample(
                operator=name,
                waiting_items=self.reading.waiting[row[name]],
                durations_ms=self._durations_ms[row[name]],
                arrived_items=arrived[row[name]],
                completed_items=completed[row[name]],
                capacity=self.reading.capacity[row[name]],
            )
            for name in self.world.scene.topology.operator_names
        }

    def host_sample(self, host: Host, now_us: int) -> HostSample:
        """A leased host as it is now; what was not read is absent."""
        cpu, memory, runnable = self.reading.host.get(host.number, (None, None, None))
        return replace(host_sample(host, now_us, cpu, memory), runnable=runnable)

    def instance_sample(self, one: Instance, now_us: int) -> InstanceSample:
        """An instance as it is now; its share is absent until it was read."""
        return instance_sample(one, now_us, self.reading.instance_cpu.get(one.number), None)

    # -------------------------------------------------------------- recording

    def take(self) -> dict[str, dict[str, Any]]:
        """The measured columns since the last call."""
        rows, self._rows = self._rows, {}
        names = self.world.names
        makers: dict[str, Callable[[Taken], dict[str, Any]]] = {
            "processing_duration": self._durations_table,
            "queue": lambda taken: queue_table(taken, names),
            "instance_utilisation": lambda taken: instances_table(taken, names),
            "host_utilisation": hosts_table,
            "tenant": _tenants_table,
        }
        return {table: make(rows[table]) for table, make in makers.items() if table in rows}

    def _durations_table(self, taken: list[tuple[Any, ...]]) -> dict[str, Any]:
        columns = map(np.concatenate, zip(*taken, strict=True))
        done_s, operator, instance, duration_ms, wait_ms, age_ms = columns
        return {
            "time_s": done_s,
            "operator": Coded(operator, self.world.names),
            "instance": instance_names(operator, instance, self.world.names),
            "duration_ms": duration_ms,
            "wait_ms": wait_ms,
            "age_ms": age_ms,
        }

    def to_plain(self) -> dict[str, Any]:
        """Plain values for a snapshot (taken when no measured rows are left)."""
        reading = self.reading
        return {
            "waiting": reading.waiting,
            "capacity": reading.capacity,
            "instance_cpu": list(reading.instance_cpu.items()),
            "host": list(reading.host.items()),
            "missed": reading.missed,
            "durations_ms": self._durations_ms,
            "counted": self.counted.tolist(),
            "observed": self.observed.tolist(),
            "tenants": [
                (one.tenant, one.latency_ms, one.tail_latency_ms, one.juice)
                for one in self.tenants.samples.values()
            ],
        }

    def load_plain(self, plain: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.reading = Reading(
            waiting=plain["waiting"],
            capacity=plain["capacity"],
            instance_cpu=dict(plain["instance_cpu"]),
            host={number: tuple(shares) for number, shares in plain["host"]},
            missed=plain["missed"],
        )
        self._durations_ms = [tuple(last) for last in plain["durations_ms"]]
        self.counted, self.observed = np.array(plain["counted"]), np.array(plain["observed"])
        self.tenants.samples = {
            name: TenantSample(tenant=name, latency_ms=latency, tail_latency_ms=tail, juice=juice)
            for name, latency, tail, juice in plain["tenants"]
        }


def _tenants_table(taken: list[tuple[Any, ...]]) -> dict[str, Any]:
    rows = [(now_us / 1e6, *row) for now_us, rows in taken for row in rows]
    titles = [
        "time_s",
        "tenant",
        "latency_ms",
        "tail_latency_ms",
        "juice",
        "utility",
        "max_utility",
    ]
    return as_columns(rows, titles)
