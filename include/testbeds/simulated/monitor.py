"""What the simulated monitor reads every monitoring period, and the columns it keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from include.testbeds.columns import Coded, coded
from include.testbeds.simulated import kernel
from include.testbeds.simulated.fleet import Fleet
from include.testbeds.simulated.network import Network

LAST_DURATIONS = 5
"""N of Algorithm 1: how many recorded durations a controller sees."""
NOISE_READINGS, NOISE_WIDTH = 32, 128


@dataclass(slots=True)
class Reading:
    """The last reading. Arrays have one entry per operator, in flow order."""

    waiting: np.ndarray
    arrived: np.ndarray
    completed: np.ndarray
    durations_ms: list[tuple[float, ...]]
    cpu_by_instance: dict[int, float] = field(default_factory=dict)
    cpu_by_host: dict[int, float] = field(default_factory=dict)
    memory_by_host: dict[int, float] = field(default_factory=dict)
    missed: bool = False
    """The monitor did not answer (a monitoring gap)."""


@dataclass(slots=True)
class Monitor:
    """Reads a network and a fleet; keeps measured columns until they are taken."""

    network: Network
    cpu_noise: float
    capacity: tuple[float, float]
    """CPU cores and usable memory (MB) of a host."""
    reading: Reading = field(init=False)
    _rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    _arrived: np.ndarray = field(init=False)
    _completed: np.ndarray = field(init=False)
    _noise_block: int = -1
    _noise_rows: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    _cpu_cores: np.ndarray = field(init=False)
    _memory_mb: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing read."""
        topology, names = self.network.topology, self.network.names
        none = np.zeros(len(names), dtype=np.int64)
        self.reading = Reading(none, none, none, [()] * len(names))
        self._arrived, self._completed = none.copy(), none.copy()
        self._cpu_cores = np.array([topology.operator[name].cpu_cores for name in names])
        self._memory_mb = np.array([topology.operator[name].memory_mb for name in names])

    def read(self, now_us: int, period_us: int, fleet: Fleet, *, missed: bool) -> None:
        """One monitoring period ends now. Items are always recorded by the operators
        themselves; a missed reading loses queues and utilisation.
        """
        records = self.network.take_records()
        if len(records):
            self._rows.setdefault("processing_duration", []).append((records,))
            self._remember(records)
        waiting = self.network.waiting_items(now_us)
        nodes = self.network.state.nodes[: waiting.size]
        arrived = nodes[:, kernel.NUMBERED] - nodes[:, kernel.ORPHANS] + waiting
        completed = nodes[:, kernel.COMPLETED].copy()
        busy_share = self._busy_share(now_us, period_us)
        self.reading.missed = missed
        if missed:
            return
        before = self.reading
        self.reading = Reading(
            waiting=waiting,
            arrived=before.arrived + arrived - self._arrived,
            completed=before.completed + completed - self._completed,
            durations_ms=before.durations_ms,
        )
        servers, slots = self.network.state.servers, self.network.slots_in_use()
        is_open = slots & (servers[:, :, kernel.OPEN] == 1)
        self._rows.setdefault("queue", []).append(
            (
                now_us,
                waiting,
                arrived - self._arrived,
                completed - self._completed,
                is_open.sum(axis=1),
                (is_open & (servers[:, :, kernel.READY_US] <= now_us)).sum(axis=1),
            )
        )
        self._arrived, self._completed = arrived, completed
        self._read_utilisation(now_us, period_us, busy_share, fleet)

    def forget_counts(self) -> None:
        """Start the counts of the next observation at zero."""
        none = np.zeros_like(self.reading.arrived)
        self.reading.arrived, self.reading.completed = none, none.copy()

    def _remember(self, records: np.ndarray) -> None:
        """Keep the last durations of every operator, oldest first."""
        operators = np.arange(len(self.network.names) + 1)
        bounds = np.searchsorted(records[:, kernel.R_OPERATOR], operators).tolist()
        durations_ms = records[:, kernel.R_DURATION_US] / 1000
        last = list(self.reading.durations_ms)
        for o, (first, end) in enumerate(pairwise(bounds)):
            recent = durations_ms[max(first, end - LAST_DURATIONS) : end].tolist()
            last[o] = (*last[o], *recent)[-LAST_DURATIONS:]
        self.reading.durations_ms = last

    def _busy_share(self, now_us: int, period_us: int) -> np.ndarray:
        """Share of the period that each slot was busy. Shape (operators, slots)."""
        servers = self.network.state.servers
        ahead_us = servers[:, :, kernel.BUSY] * (servers[:, :, kernel.DONE_US] - now_us)
        busy_us = servers[:, :, kernel.BUSY_US] - np.maximum(ahead_us, 0)
        share: np.ndarray = (busy_us - servers[:, :, kernel.BUSY_SEEN_US]) / period_us
        servers[:, :, kernel.BUSY_SEEN_US] = busy_us
        return share

    def _noise(self, reading: int, count: int) -> np.ndarray:
        """Measurement noise of a reading; a block of readings shares one generator."""
        block, row = divmod(reading, NOISE_READINGS)
        if block != self._noise_block:
            generator = self.network.draws.generator("monitor", "cpu", block)
            rows = generator.standard_normal((NOISE_READINGS, NOISE_WIDTH))
            self._noise_block, self._noise_rows = block, rows * self.cpu_noise
        return np.resize(self._noise_rows[row], count)

    def _read_utilisation(
        self, now_us: int, period_us: int, busy_share: np.ndarray, fleet: Fleet
    ) -> None:
        slots = self.network.slots_in_use()
        servers = self.network.state.servers[slots]
        operator, _ = np.nonzero(slots)
        instance, host = servers[:, kernel.INSTANCE], servers[:, kernel.HOST]
        share = busy_share[slots] + self._noise(now_us // period_us, host.size)
        share = np.round(np.clip(share, 0, 1), 4)
        cpu_cores, memory_mb = self.capacity
        hosts = [one.number for one in fleet.leased() if one.up_us <= now_us]
        size = max([*fleet.hosts, 0]) + 1
        cpu = np.bincount(host, share * self._cpu_cores[operator], size) / cpu_cores
        memory = np.bincount(host, self._memory_mb[operator], size) / memory_mb
        count = np.bincount(host, minlength=size)
        self.reading.cpu_by_instance = dict(zip(instance.tolist(), share.tolist(), strict=True))
        self.reading.cpu_by_host = {number: round(float(cpu[number]), 4) for number in hosts}
        self.reading.memory_by_host = {number: round(float(memory[number]), 4) for number in hosts}
        self._rows.setdefault("instance_utilisation", []).append(
            (now_us, instance, operator, host, share)
        )
        up = np.array(hosts, dtype=np.int64)
        self._rows.setdefault("host_utilisation", []).append(
            (now_us, up, np.round(cpu[up], 4), np.round(memory[up], 4), count[up])
        )

    def take(self) -> dict[str, dict[str, Any]]:
        """The measured columns since the last call."""
        rows, self._rows = self._rows, {}
        names = self.network.names
        tables: dict[str, dict[str, Any]] = {}
        if taken := rows.get("processing_duration"):
            records = np.concatenate([row[0] for row in taken])
            operator, instance, _, done_us, duration_us, wait_us, age_us = records.T
            tables["processing_duration"] = {
                "time_s": done_us / 1e6,
                "operator": Coded(operator, names),
                "instance": _instances(operator, instance, names),
                "duration_ms": duration_us / 1000,
                "wait_ms": wait_us / 1000,
                "age_ms": age_us / 1000,
            }
        if taken := rows.get("queue"):
            times_us, *columns = zip(*taken, strict=True)
            count = len(names)
            tables["queue"] = {
                "time_s": np.repeat(np.array(times_us), count) / 1e6,
                "operator": Coded(np.tile(np.arange(count), len(taken)), names),
                **dict(
                    zip(
                        (
                            "waiting_items",
                            "arrived_items",
                            "completed_items",
                            "instances",
                            "ready_instances",
                        ),
                        (np.concatenate(column) for column in columns),
                        strict=True,
                    )
                ),
            }
        if taken := rows.get("instance_utilisation"):
            time_s, (instance, operator, host, share) = _stacked(taken)
            tables["instance_utilisation"] = {
                "time_s": time_s,
                "instance": _instances(operator, instance, names),
                "operator": Coded(operator, names),
                "host": coded(host, "host-{}"),
                "cpu_share": share,
            }
        if taken := rows.get("host_utilisation"):
            time_s, (host, cpu, memory, count_) = _stacked(taken)
            tables["host_utilisation"] = {
                "time_s": time_s,
                "host": coded(host, "host-{}"),
                "cpu_share": cpu,
                "memory_share": memory,
                "instances": count_,
            }
        return tables

    def to_plain(self) -> dict[str, Any]:
        """Plain values for a snapshot (taken when no measured rows are left)."""
        reading = self.reading
        return {
            "waiting": reading.waiting.tolist(),
            "arrived": reading.arrived.tolist(),
            "completed": reading.completed.tolist(),
            "durations_ms": reading.durations_ms,
            "cpu_by_instance": list(reading.cpu_by_instance.items()),
            "cpu_by_host": list(reading.cpu_by_host.items()),
            "memory_by_host": list(reading.memory_by_host.items()),
            "missed": reading.missed,
            "arrived_seen": self._arrived.tolist(),
            "completed_seen": self._completed.tolist(),
        }

    def load_plain(self, plain: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.reading = Reading(
            waiting=np.array(plain["waiting"]),
            arrived=np.array(plain["arrived"]),
            completed=np.array(plain["completed"]),
            durations_ms=[tuple(last) for last in plain["durations_ms"]],
            cpu_by_instance=dict(plain["cpu_by_instance"]),
            cpu_by_host=dict(plain["cpu_by_host"]),
            memory_by_host=dict(plain["memory_by_host"]),
            missed=plain["missed"],
        )
        self._arrived = np.array(plain["arrived_seen"])
        self._completed = np.array(plain["completed_seen"])


def _stacked(taken: list[tuple[Any, ...]]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Rows of (time, array, array, ...) as one time column and one array per column."""
    times_us, *columns = zip(*taken, strict=True)
    lengths = [len(column) for column in columns[0]]
    return np.repeat(np.array(times_us), lengths) / 1e6, [np.concatenate(one) for one in columns]


def _instances(operator: np.ndarray, instance: np.ndarray, names: tuple[str, ...]) -> Coded:
    """Instance names from operator rows and instance numbers."""
    numbers, first, codes = np.unique(instance, return_index=True, return_inverse=True)
    return Coded(
        codes,
        tuple(f"{names[operator[i]]}-{number}" for i, number in zip(first, numbers, strict=True)),
    )
