"""Readings of a virtual monitor, one per monitoring period, and the columns it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from include.model.compliance import LEVELS
from include.model.observation import HostSample, InstanceSample, OperatorSample
from include.model.topology import Topology
from include.testbeds.base import ACTS, LAST_DURATIONS
from include.testbeds.columns import numbered
from include.testbeds.snapshots import F64, I64, StoredState
from include.testbeds.virtual.calibration import VirtualCalibration
from include.testbeds.virtual.draws import Draws
from include.testbeds.virtual.fleet import VirtualHost, VirtualInstance
from include.testbeds.virtual.tables import (
    Taken,
    durations_table,
    hosts_table,
    instances_table,
    queue_table,
)

NOISE_READINGS = 32
NOTHING = (None, None, None)
Shares = tuple[float, float]


@dataclass(slots=True)
class VirtualReading:
    """The last reading: lists by operator row, dictionaries by instance or host number."""

    waiting: list[int] = field(default_factory=list)
    longest: list[int] = field(default_factory=list)
    """Items in each operator's longest queue and in work; empty if not counted."""
    oldest_s: list[float] = field(default_factory=list)
    """Waiting time of each operator's oldest item; empty if not measured."""
    capacity: list[float | None] = field(default_factory=list)
    instance: dict[int, tuple[float, float | None]] = field(default_factory=dict)
    """Shares of CPU and memory; None is unknown."""
    host: dict[int, tuple[float, float, float | None]] = field(default_factory=dict)
    """Shares of CPU and memory, and runnable threads."""
    missed: bool = False
    """Whether the monitor did not answer (a monitoring gap)."""


@dataclass(slots=True)
class BusyMeter:
    """Adds up busy time since :meth:`begin_anew`; keeps the last shares until a new reading."""

    operators: int
    shares: list[Shares | None] = field(default_factory=list)
    """By operator: mean share of its instances and the highest; None without a ready instance."""
    unread: list[tuple[I64, I64, F64, F64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shares = self.shares or [None] * self.operators

    def read(self, operator: I64, instance: I64, busy_s: F64, there_s: F64) -> None:
        """Add a period: seconds that each instance worked, and could have worked."""
        could = there_s > 0
        if could.any():
            self.unread.append((operator[could], instance[could], busy_s[could], there_s[could]))

    def latest_shares(self) -> list[Shares | None]:
        """Shares since :meth:`begin_anew`; the previous ones without a reading since."""
        if self.unread:
            operator, instance, busy_s, there_s = map(
                np.concatenate, zip(*self.unread, strict=True)
            )
            numbers, row = numbered(instance)
            operator_of = np.zeros(len(numbers), dtype=np.int64)
            operator_of[row] = operator
            busy_s, there_s = np.bincount(row, busy_s), np.bincount(row, there_s)
            each = np.minimum(busy_s / there_s, 1.0)
            highest = np.zeros(self.operators)
            np.maximum.at(highest, operator_of, each)
            all_s = np.bincount(operator_of, there_s, self.operators)
            mean = np.bincount(operator_of, each * there_s, self.operators) / np.maximum(
                all_s, 1e-9
            )
            self.shares = [
                (round(share, 4), round(most, 4)) if s > 0 else None
                for share, most, s in zip(
                    mean.tolist(), highest.tolist(), all_s.tolist(), strict=True
                )
            ]
        return self.shares

    def begin_anew(self) -> None:
        self.unread = []


@dataclass(slots=True)
class Watch:
    """Counters of one observer at its last observation."""

    observed: I64
    """(2, operators): items that had arrived and that were completed."""
    recorded: I64
    """(2, operators): recorded items, and the late ones among them."""
    busy: BusyMeter

    @classmethod
    def begun(cls, operators: int) -> Watch:
        nothing = np.zeros((2, operators), dtype=np.int64)
        return cls(nothing, nothing.copy(), BusyMeter(operators))


@dataclass(slots=True)
class Noise:
    """What readings of CPU shares are away from the model; a block of them shares one generator."""

    draws: Draws
    calibration: VirtualCalibration
    width: int
    kinds: int = 1
    _block: int = -1
    _rows: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def for_reading(self, reading: int, kind: int = 0) -> np.ndarray:
        """Noise of reading number ``reading`` of the run. Shape (width,)."""
        block, row = divmod(reading, NOISE_READINGS)
        if block != self._block:
            generator = self.draws.generator("monitor", "cpu", block)
            rows = generator.standard_normal((self.kinds * NOISE_READINGS, self.width))
            self._block, self._rows = block, rows * self.calibration.cpu_noise
        noise: np.ndarray = self._rows[self.kinds * row + kind]
        return noise + self.residual(reading) if self.calibration.cpu_residuals else noise

    def residual(self, reading: int) -> float:
        """CPU share that all of a reading is away by: that of a recording, in blocks of readings.

        Blocks are drawn anew one after the other, each beginning anywhere and going on at the first
        residual after the last: the circular bootstrap (Politis and Romano, A circular
        block-resampling procedure for stationary data, 1992). So what is alike from reading to
        reading stays so.
        """
        residuals, length = self.calibration.cpu_residuals, self.calibration.cpu_residual_block
        block, row = divmod(reading, length)
        first = int(self.draws.generator("cpu_residual", "monitor", block).integers(len(residuals)))
        return residuals[(first + row) % len(residuals)]


@dataclass(slots=True, kw_only=True)
class VirtualMonitor(StoredState):
    """Keeps the last reading, and measured columns until they are taken."""

    STORED: ClassVar[tuple[str, ...]] = (
        "reading", "counted", "recorded", "busy_s", "watches", "_durations_ms",
    )  # fmt: skip

    topology: Topology
    noise: Noise
    names: tuple[str, ...] = field(init=False)
    """Operators in flow order: the rows of all arrays."""
    reading: VirtualReading = field(init=False)
    counted: I64 = field(init=False)
    """(2, operators): items that had arrived and were completed at the last reading."""
    recorded: I64 = field(init=False)
    """(2, operators): recorded items so far, and the late ones among them."""
    busy_s: F64 = field(init=False)
    """(operators,): seconds that instances have worked so far."""
    watches: dict[str, Watch] = field(init=False)
    """By observer; the acting controller is ``ACTS``."""
    _late_ms: F64 = field(init=False)
    """By row, the highest duration that still is near real-time."""
    _durations_ms: list[tuple[float, ...]] = field(init=False)
    _unread: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    _rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names, operators = self.topology.flow_order, self.topology.operator
        size, slo_ms = len(self.names), [operators[name].slo_ms for name in self.names]
        self._late_ms = dict(LEVELS)["near_real_time"] * np.array(slo_ms)
        self.reading = VirtualReading([0] * size, capacity=[None] * size)
        self.counted = np.zeros((2, size), dtype=np.int64)
        self.recorded, self.busy_s = np.zeros((2, size), dtype=np.int64), np.zeros(size)
        self._durations_ms = [()] * size
        self.watches = {ACTS: Watch.begun(size)}

    # ---------------------------------------------------------------- reading

    def keep(self, table: str, *columns: Any) -> None:
        """Keep a reading's columns for a measured table."""
        self._rows.setdefault(table, []).append(columns)

    def keep_durations(self, operator: np.ndarray, duration_ms: np.ndarray, *rest: Any) -> None:
        """Keep sampled items; an operator's rows are in the order of recording."""
        if len(operator):
            self.keep("processing_duration", operator, duration_ms, *rest)
            self._unread.append((operator, duration_ms))

    def keep_queues(self, times_us: int | I64, waiting: I64, counted: I64, *instances: I64) -> None:
        """Keep queue lengths, item counts since the last reading and instance counts.

        For one or more readings: ``waiting`` has shape (readings * operators,), ``counted``
        (2, readings * operators).
        """
        size = len(self.names)
        before = np.concatenate([self.counted, counted[:, :-size]], axis=1)
        self.counted = counted[:, -size:]
        self.keep("queue", times_us, waiting, *(counted - before), *instances)

    def catch_up(self) -> None:
        """Process readings that were deferred, if the testbed defers any."""
        return

    def keep_busy(self, operator: I64, instance: I64, busy_s: F64, there_s: F64) -> None:
        """Keep the seconds that each instance worked, and could have worked, in a period."""
        for watch in self.watches.values():
            watch.busy.read(operator, instance, busy_s, there_s)

    def count_busy(self, operator: I64, busy_s: F64) -> None:
        """Add the seconds that instances worked in a period, also if the reading was missed."""
        self.busy_s += np.bincount(operator, busy_s, len(self.names))

    # -------------------------------------------------------------- observing

    def durations_ms(self) -> list[tuple[float, ...]]:
        """The last recorded durations of every operator, oldest first."""
        if self._unread:
            operator, duration_ms = map(np.concatenate, zip(*self._unread, strict=True))
            late = duration_ms > self._late_ms[operator]
            kinds = (operator, operator[late])
            self.recorded += [np.bincount(kind, minlength=len(self.names)) for kind in kinds]
            by_operator = np.argsort(operator, kind="stable")
            rows = np.arange(len(self.names) + 1)
            bounds = np.searchsorted(operator[by_operator], rows).tolist()
            recorded_ms = duration_ms[by_operator]
            for o, (first, end) in enumerate(pairwise(bounds)):
                recent = recorded_ms[max(first, end - LAST_DURATIONS) : end].tolist()
                self._durations_ms[o] = (*self._durations_ms[o], *recent)[-LAST_DURATIONS:]
            self._unread = []
        return self._durations_ms

    def operator_samples(self, by: str) -> dict[str, OperatorSample]:
        """Last reading of every operator, with counts since :meth:`count_anew`."""
        watch = self._watch(by)
        arrived, completed = (self.counted - watch.observed).tolist()
        durations_ms, row = self.durations_ms(), {name: o for o, name in enumerate(self.names)}
        arrived_in_all, completed_in_all = self.counted.tolist()
        longest, oldest_s = self.reading.longest, self.reading.oldest_s
        recorded, late = (self.recorded - watch.recorded).tolist()
        busy_in_all_s = self.busy_s.tolist()
        busy = [share or (None, None) for share in watch.busy.latest_shares()]
        return {
            name: OperatorSample(
                operator=name,
                waiting_items=self.reading.waiting[row[name]],
                durations_ms=durations_ms[row[name]],
                arrived_items=arrived[row[name]],
                completed_items=completed[row[name]],
                longest_queue_items=longest[row[name]] if longest else None,
                capacity=self.reading.capacity[row[name]],
                busy_share=busy[row[name]][0],
                busiest_share=busy[row[name]][1],
                arrived_in_all=arrived_in_all[row[name]],
                completed_in_all=completed_in_all[row[name]],
                busy_in_all_s=busy_in_all_s[row[name]],
                oldest_waits_s=oldest_s[row[name]] if oldest_s else None,
                late_share=late[row[name]] / count if (count := recorded[row[name]]) else None,
            )
            for name in self.topology.operator_names
        }

    def count_anew(self, by: str) -> None:
        watch = self._watch(by)
        self.durations_ms()  # counts what was recorded
        watch.observed, watch.recorded = self.counted, self.recorded.copy()
        watch.busy.begin_anew()

    def _watch(self, by: str) -> Watch:
        if by not in self.watches:
            self.watches[by] = Watch.begun(len(self.names))
        return self.watches[by]

    def host_sample(self, host: VirtualHost, now_us: int) -> HostSample:
        """Current state of a leased host; unread shares are None."""
        cpu, memory, runnable = self.reading.host.get(host.number, NOTHING)
        return HostSample(
            host=host.name,
            flavor=host.flavor,
            ordered_s=host.ordered_us / 1e6,
            paid_until_s=host.paid_until_us / 1e6,
            up=host.up_us <= now_us,
            releasing=host.releasing,
            images=frozenset(host.images),
            cpu_share=cpu,
            memory_share=memory,
            runnable=runnable,
        )

    def instance_sample(self, instance: VirtualInstance, now_us: int) -> InstanceSample:
        """Current state of an instance; shares are None until read."""
        cpu, memory = self.reading.instance.get(instance.number, NOTHING[:2])
        return InstanceSample(
            instance=instance.name,
            operator=instance.operator,
            host=f"host-{instance.host}",
            started_s=instance.started_us / 1e6,
            ready=instance.ready_us <= now_us,
            stopping=instance.stopping,
            cpu_share=cpu,
            memory_share=memory,
        )

    # -------------------------------------------------------------- recording

    def take_tables(self) -> dict[str, dict[str, Any]]:
        """Measured columns since the last call, by table."""
        self.catch_up()
        rows, self._rows = self._rows, {}
        makers = self.makers()
        return {table: make(rows[table]) for table, make in makers.items() if table in rows}

    def makers(self) -> dict[str, Callable[[Taken], dict[str, Any]]]:
        """Functions from kept rows to columns, by measured table."""
        operators = self.topology.operator
        homes = tuple(operators[name].runs_in or name for name in self.names)
        return {
            "processing_duration": lambda taken: durations_table(taken, self.names, homes),
            "queue": lambda taken: queue_table(taken, self.names),
            "instance_utilisation": lambda taken: instances_table(taken, self.names),
            "host_utilisation": hosts_table,
        }

    def to_plain(self) -> dict[str, Any]:
        """Plain values for a snapshot; measured rows must have been taken."""
        self.catch_up()
        self.durations_ms()
        return StoredState.to_plain(self)
