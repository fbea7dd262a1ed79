"""What the simulated monitor reads every monitoring period, and the columns it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from include.testbeds.columns import Coded
from include.testbeds.simulated import kernel
from include.testbeds.simulated.fleet import Fleet
from include.testbeds.simulated.network import Network
from include.testbeds.simulated.tables import (
    Taken,
    hosts_table,
    instance_names,
    instances_table,
    queue_table,
)

LAST_DURATIONS = 5
"""N of Algorithm 1: how many recorded durations a controller sees."""
NOISE_READINGS, NOISE_WIDTH = 32, 128
WAVES = 24


@dataclass(slots=True)
class Reading:
    """The last reading, as arrays: per operator, per instance and per host that is up."""

    waiting: np.ndarray
    instances: np.ndarray
    operators: np.ndarray
    instance_cpu: np.ndarray
    hosts: np.ndarray
    host_cpu: np.ndarray
    host_memory: np.ndarray
    missed: bool = False
    """The monitor did not answer (a monitoring gap)."""


@dataclass(slots=True)
class Monitor:
    """Reads a network and a fleet; keeps measured columns until they are taken."""

    network: Network
    cpu_noise: float
    cpu_cores: float
    """Of a host."""
    memory_mb: float
    """Of a host, as far as instances may use it."""
    reading: Reading = field(init=False)
    arrived: np.ndarray = field(init=False)
    completed: np.ndarray = field(init=False)
    """Items per operator since the run began, at the last reading."""
    observed: np.ndarray = field(init=False)
    """(2, operators): ``arrived`` and ``completed`` when somebody last observed."""
    _durations_ms: list[tuple[float, ...]] = field(init=False)
    _unread: list[np.ndarray] = field(default_factory=list)
    _rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    _noise_block: int = -1
    _noise_rows: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    _needs: np.ndarray = field(init=False)
    _waves: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        """Start with nothing read."""
        topology, names = self.network.topology, self.network.names
        none = np.zeros(len(names), dtype=np.int64)
        self.reading = Reading(none, none[:0], none[:0], none[:0], none[:0], none[:0], none[:0])
        self.arrived, self.completed = none, none
        self.observed = np.stack([none, none])
        self._durations_ms = [()] * len(names)
        operators = [topology.operator[name] for name in names]
        self._needs = np.array([(op.cpu_cores, op.memory_mb) for op in operators])

    def read(self, now_us: int, period_us: int, fleet: Fleet, *, missed: bool) -> None:
        """One monitoring period ends now.

        Items are recorded by the operators themselves whether or not the monitor answers; a
        missed reading loses queues and utilisation.
        """
        records = self.network.take_records()
        if len(records):
            self._rows.setdefault("processing_duration", []).append((records,))
            self._unread.append(records)
        per_operator, per_server, busy_share = self.network.read(now_us, period_us)
        self.reading.missed = missed
        if missed:
            return
        waiting, instances, ready = per_operator.T
        nodes = self.network.state.nodes[: len(waiting)]
        arrived = nodes[:, kernel.NUMBERED] - nodes[:, kernel.ORPHANS] + waiting
        completed = nodes[:, kernel.COMPLETED].copy()
        counts = (arrived - self.arrived, completed - self.completed)
        self._rows.setdefault("queue", []).append((now_us, waiting, *counts, instances, ready))
        self.arrived, self.completed = arrived, completed
        self._read_utilisation(now_us, period_us, fleet, per_server, busy_share)
        self.reading.waiting = waiting

    def _read_utilisation(
        self,
        now_us: int,
        period_us: int,
        fleet: Fleet,
        per_server: np.ndarray,
        busy_share: np.ndarray,
    ) -> None:
        instance, operator, host = per_server.T
        load = self._load(now_us, period_us, operator, busy_share)
        cpu = (load + self._noise(now_us // period_us, host.size)).clip(0, 1).round(4)
        up = np.array([one.number for one in fleet.leased() if one.up_us <= now_us], dtype=int)
        size = len(fleet.hosts) + 1
        needs = self._needs[operator]
        host_cpu = np.bincount(host, cpu * needs[:, 0], size)[up] / self.cpu_cores
        host_memory = np.bincount(host, needs[:, 1], size)[up] / self.memory_mb
        host_cpu, host_memory = host_cpu.round(4), host_memory.round(4)
        self.reading = Reading(
            self.reading.waiting, instance, operator, cpu, up, host_cpu, host_memory
        )
        self._rows.setdefault("instance_utilisation", []).append(
            (now_us, instance, operator, host, cpu)
        )
        self._rows.setdefault("host_utilisation", []).append(
            (now_us, up, host_cpu, host_memory, np.bincount(host, minlength=size)[up])
        )

    def _load(
        self, now_us: int, period_us: int, operator: np.ndarray, busy_share: np.ndarray
    ) -> np.ndarray:
        """What a perfect meter would show of every instance."""
        calibration = self.network.calibration
        load = busy_share * calibration.cpu_when_busy
        if calibration.cpu_in_pause:
            paused = self.network.paused_share(now_us, period_us)[operator]
            load = load + calibration.cpu_in_pause * np.minimum(paused, 1 - busy_share)
        if calibration.cpu_drift:
            load = load * (1 + self._drift(now_us / 1e6))
        return load

    def _drift(self, now_s: float) -> float:
        """A slow random process: waves whose frequencies give it its correlation time.

        Made of the time alone, so it is the same wherever the run is cut.
        """
        calibration = self.network.calibration
        if self._waves is None:
            generator = self.network.draws.generator("monitor", "drift")
            pace = np.tan(np.pi * (generator.random(WAVES) - 0.5)) / calibration.cpu_drift_s
            self._waves = pace, generator.random(WAVES) * 2 * np.pi
        pace, phase = self._waves
        amplitude = calibration.cpu_drift * np.sqrt(2 / WAVES)
        return float(amplitude * np.cos(pace * now_s + phase).sum())

    def instance_memory(self) -> list[float | None]:
        """The memory share of every instance of the last reading; None where nothing is known.

        State is spread evenly over the instances of an operator.
        """
        held_mb = self.network.calibration.held_mb
        if not held_mb:
            return [None] * len(self.reading.instances)
        names, topology = self.network.names, self.network.topology
        operators = self.reading.operators
        count = np.bincount(operators, minlength=len(names)).tolist()
        shares: list[float | None] = []
        for o in operators.tolist():
            held = held_mb.get(names[o])
            share = None
            if held is not None:
                own_mb, shared_mb = held
                memory_mb = topology.operator[names[o]].memory_mb
                share = round(min(1.0, (own_mb + shared_mb / count[o]) / memory_mb), 4)
            shares.append(share)
        return shares

    def _noise(self, turn: int, count: int) -> np.ndarray:
        """Measurement noise of a reading; a block of readings shares one generator."""
        block, row = divmod(turn, NOISE_READINGS)
        if block != self._noise_block:
            generator = self.network.draws.generator("monitor", "cpu", block)
            rows = generator.standard_normal((NOISE_READINGS, NOISE_WIDTH))
            self._noise_block, self._noise_rows = block, rows * self.cpu_noise
        return np.resize(self._noise_rows[row], count)

    def counts_since_observed(self) -> tuple[list[int], list[int]]:
        """Arrived and completed items per operator since the last call."""
        now = np.stack([self.arrived, self.completed])
        arrived, completed = (now - self.observed).tolist()
        self.observed = now
        return arrived, completed

    def durations_ms(self) -> list[tuple[float, ...]]:
        """The last recorded durations of every operator, oldest first."""
        if self._unread:
            records = np.concatenate(self._unread)
            records = records[np.argsort(records[:, kernel.R_OPERATOR], kind="stable")]
            operators = np.arange(len(self.network.names) + 1)
            bounds = np.searchsorted(records[:, kernel.R_OPERATOR], operators).tolist()
            taken_ms = records[:, kernel.R_DURATION_US] / 1000
            for o, (first, end) in enumerate(pairwise(bounds)):
                recent = taken_ms[max(first, end - LAST_DURATIONS) : end].tolist()
                self._durations_ms[o] = (*self._durations_ms[o], *recent)[-LAST_DURATIONS:]
            self._unread = []
        return self._durations_ms

    def take(self) -> dict[str, dict[str, Any]]:
        """The measured columns since the last call."""
        rows, self._rows = self._rows, {}
        names = self.network.names
        makers: dict[str, Callable[[Taken], dict[str, Any]]] = {
            "processing_duration": self._durations_table,
            "queue": lambda taken: queue_table(taken, names),
            "instance_utilisation": lambda taken: instances_table(taken, names),
            "host_utilisation": hosts_table,
        }
        return {table: make(rows[table]) for table, make in makers.items() if table in rows}

    def _durations_table(self, taken: list[tuple[Any, ...]]) -> dict[str, Any]:
        records = np.concatenate([row[0] for row in taken])
        operator, instance, _, done_us, duration_us, wait_us, age_us = records.T
        return {
            "time_s": done_us / 1e6,
            "operator": Coded(operator, self.network.names),
            "instance": instance_names(operator, instance, self.network.names),
            "duration_ms": duration_us / 1000,
            "wait_ms": wait_us / 1000,
            "age_ms": age_us / 1000,
        }

    def to_plain(self) -> dict[str, Any]:
        """Plain values for a snapshot (taken when no measured rows are left)."""
        reading = self.reading
        arrays = {name: getattr(reading, name).tolist() for name in Reading.__slots__[:-1]}
        return {
            "reading": {**arrays, "missed": reading.missed},
            "durations_ms": self.durations_ms(),
            "arrived": self.arrived.tolist(),
            "completed": self.completed.tolist(),
            "observed": self.observed.tolist(),
        }

    def load_plain(self, plain: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        reading = dict(plain["reading"])
        missed = reading.pop("missed")
        # Before the first reading all are empty, and an empty list does not say what it would hold.
        shares = ("instance_cpu", "host_cpu", "host_memory")
        arrays = {k: np.array(v, float if k in shares else np.int64) for k, v in reading.items()}
        self.reading = Reading(**arrays, missed=missed)
        self._durations_ms = [tuple(last) for last in plain["durations_ms"]]
        self.arrived, self.completed = np.array(plain["arrived"]), np.array(plain["completed"])
        self.observed = np.array(plain["observed"])
