"""What the monitor of the fluid testbed reads every period, and the columns it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from include.model.observation import TenantSample
from include.model.utility import utility
from include.testbeds.columns import as_columns
from include.testbeds.flow.arrays import BUSY_S, F64, I64, R_DONE_S, R_INSTANCE, R_OPERATOR
from include.testbeds.flow.queues import FluidQueues
from include.testbeds.flow.samples import ItemSampler
from include.testbeds.flow.tenants import Tenants
from include.testbeds.virtual.cloud import us
from include.testbeds.virtual.fleet import VirtualFleet, there_for_s
from include.testbeds.virtual.monitor import Noise, VirtualMonitor, VirtualReading
from include.testbeds.virtual.tables import Taken

NOISE_WIDTH = 1024
OF_INSTANCE, OF_HOST = range(2)

Shares = dict[int, tuple[float, float | None]]


@dataclass(slots=True)
class CpuWindows:
    """CPU of instances as the mean of whole windows, as metrics-server has it: what is shown stays
    until the next window ends, and an instance is in it once it was there for a whole one.
    """

    length_us: int
    """0: every reading is shown as it is."""
    added: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Shares of this window added up, and how many, by number of the instance."""
    shown: Shares = field(default_factory=dict)

    def read(self, cpu: dict[int, float], whole: set[int], now_us: int, period_us: int) -> Shares:
        """A reading by number of instance; ``whole`` are those that were there all the time.

        Returns what is shown; memory is unknown.
        """
        readings = max(1, round(self.length_us / period_us))
        if readings > 1:
            for one in whole & cpu.keys():
                total, count = self.added.get(one, (0.0, 0))
                self.added[one] = (total + cpu[one], count + 1)
            if now_us // period_us % readings:
                return self.shown
            sums, self.added = self.added, {}
            cpu = {
                one: round(total / readings, 4)
                for one, (total, count) in sums.items()
                if count == readings
            }
        self.shown = {one: (share, None) for one, share in cpu.items()}
        return self.shown


@dataclass(slots=True, kw_only=True)
class FlowMonitor(VirtualMonitor):
    """Reads queues, fleet and tenants."""

    STORED = (*VirtualMonitor.STORED, "windows")

    queues: FluidQueues
    sampler: ItemSampler
    tenants: Tenants
    windows: CpuWindows

    @classmethod
    def of(cls, queues: FluidQueues, tenants: Tenants) -> FlowMonitor:
        """A monitor of queues that has read nothing."""
        calibration, draws = queues.calibration, queues.draws
        return cls(
            topology=queues.config.topology,
            noise=Noise(draws, calibration, NOISE_WIDTH, kinds=2),
            queues=queues,
            sampler=ItemSampler(queues.names, calibration, draws),
            tenants=tenants,
            windows=CpuWindows(us(calibration.cpu_window_s)),
        )

    # ---------------------------------------------------------------- reading

    def read(self, now_us: int, period_us: int, fleet: VirtualFleet, *, missed: bool) -> None:
        """One monitoring period ends now.

        Items are recorded by the operators themselves whether or not the monitor answers; a
        missed reading loses queues, utilisation and tenants.
        """
        self._record(*self.queues.take_rows())
        used_s, host_used_s = self.queues.take_used()
        sinks = self.queues.take_sinks()
        worked = np.flatnonzero(used_s[:, BUSY_S])  # also those that have left since
        self.count_busy(self.queues.operator_of[worked], used_s[worked, BUSY_S])
        if missed:
            reading = self.reading
            self.reading = VirtualReading(reading.waiting, capacity=reading.capacity, missed=True)
            return
        self._read_queues(now_us, fleet)
        period_s = period_us / 1e6
        self._read_instances(now_us, period_us, fleet, used_s / period_s)
        self._read_hosts(now_us, period_us, fleet, host_used_s / period_s)
        if self.topology.tenants:
            self.tenants.read(now_us / 1e6, sinks)
            samples = self.tenants.samples.values()
            self.keep("tenant", now_us, [self._worth(sample) for sample in samples])

    def _record(self, rows: I64, values: F64) -> None:
        if len(rows):
            duration_ms, wait_ms, age_ms = self.sampler.durations(rows, values)
            rest = (rows[:, R_INSTANCE], values[:, R_DONE_S], wait_ms, age_ms)
            self.keep_durations(rows[:, R_OPERATOR], duration_ms, *rest)

    def _read_queues(self, now_us: int, fleet: VirtualFleet) -> None:
        size = len(self.names)
        running = fleet.serving()
        started = np.bincount([one.row for one in running], minlength=size)
        ready = np.bincount([one.row for one in running if one.ready_us <= now_us], minlength=size)
        waiting = self.queues.waiting_items()
        oldest_s = self.queues.oldest_s(now_us / 1e6)
        self.reading = VirtualReading(waiting.tolist(), oldest_s=oldest_s)
        self.keep_queues(now_us, waiting, self.queues.whole_items(), started, ready)

    def _read_instances(
        self, now_us: int, period_us: int, fleet: VirtualFleet, used: np.ndarray
    ) -> None:
        ready = [one for one in fleet.instances.values() if one.ready_us <= now_us]
        number = np.array([one.number for one in ready], dtype=np.int64)
        operator = np.array([one.row for one in ready], dtype=np.int64)
        host = np.array([one.host for one in ready], dtype=np.int64)
        cpu, busy = used[number].T
        there_s = there_for_s(fleet, number, now_us, period_us)
        self.keep_busy(operator, number, busy * period_us / 1e6, there_s)
        calibration = self.queues.calibration
        cpu = calibration.cpu_at_rest + cpu * (calibration.cpu_when_busy - calibration.cpu_at_rest)
        noise = self.noise.for_reading(now_us // period_us, OF_INSTANCE)
        cpu = (cpu + noise[number % NOISE_WIDTH]).clip(0, 1).round(4)
        highest = np.full(len(self.names), -1.0)
        np.maximum.at(highest, operator, busy.clip(0, 1).round(4))
        self.reading.capacity = [None if share < 0 else share for share in highest.tolist()]
        shares = dict(zip(number.tolist(), cpu.tolist(), strict=True))
        whole = set(number[there_s >= period_us / 1e6].tolist())
        self.reading.instance = self.windows.read(shares, whole, now_us, period_us)
        self.keep("instance_utilisation", now_us, number, operator, host, cpu)

    def _read_hosts(
        self, now_us: int, period_us: int, fleet: VirtualFleet, used: np.ndarray
    ) -> None:
        up = np.array([one.number for one in fleet.leased() if one.up_us <= now_us], dtype=int)
        held, operators = fleet.instances.values(), self.topology.operator
        on = [one.host for one in held]
        reserved_mb = [operators[one.operator].memory_mb for one in held]
        flavor, size = self.queues.config.flavor, fleet.hosts_leased + 1
        memory = np.bincount(on, reserved_mb, size)[up] / flavor.capacity.memory_mb
        instances = np.bincount(on, minlength=size)[up]
        cores, runnable = used[up].T
        noise = self.noise.for_reading(now_us // period_us, OF_HOST)
        host_cpu = (cores / flavor.vcpus + noise[up % NOISE_WIDTH]).clip(0, 1).round(4)
        memory, runnable = memory.round(4), runnable.round(3)
        shares = zip(host_cpu.tolist(), memory.tolist(), runnable.tolist(), strict=True)
        self.reading.host = dict(zip(up.tolist(), shares, strict=True))
        self.keep("host_utilisation", now_us, up, host_cpu, memory, instances)

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

    # -------------------------------------------------------------- recording

    def makers(self) -> dict[str, Callable[[Taken], dict[str, Any]]]:
        return VirtualMonitor.makers(self) | {"tenant": _tenants_table}

    def to_plain(self) -> dict[str, Any]:
        tenants = msgspec.to_builtins(self.tenants.samples)
        return VirtualMonitor.to_plain(self) | {"tenants": tenants}

    def load_plain(self, plain: dict[str, Any]) -> None:
        VirtualMonitor.load_plain(self, plain)
        self.tenants.samples = msgspec.convert(plain["tenants"], dict[str, TenantSample])


def _tenants_table(taken: list[tuple[Any, ...]]) -> dict[str, Any]:
    rows = [(now_us / 1e6, *row) for now_us, rows in taken for row in rows]
    titles = "time_s tenant latency_ms tail_latency_ms juice utility max_utility"
    return as_columns(rows, titles.split())
