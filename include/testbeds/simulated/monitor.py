"""Readings of queues of single items."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from include.model.host import Capacity
from include.testbeds.simulated import kernel
from include.testbeds.simulated.network import LATER_US, QueueingNetwork
from include.testbeds.snapshots import F64, I64
from include.testbeds.virtual.fleet import VirtualFleet
from include.testbeds.virtual.monitor import Noise, VirtualMonitor

NOISE_WIDTH = 128
WAVES = 24


@dataclass(frozen=True, slots=True)
class _Deferred:
    """A reading that :meth:`SimulatedMonitor.catch_up` processes. Arrays as in reading.read."""

    now_us: int
    per_operator: I64
    per_server: I64
    busy_share: F64
    paused: F64
    """(n,): share of the period in which the operator of each server was paused."""
    up: list[int]
    """Numbers of the hosts that were up."""


@dataclass(slots=True, kw_only=True)
class SimulatedMonitor(VirtualMonitor):
    """Reads queues and servers; processes readings when they are needed."""

    network: QueueingNetwork
    host: Capacity
    """Capacity of a host for instances."""
    needs: np.ndarray
    """(operators, 2): cores and MB that an instance reserves."""
    packs: bool = False
    """Whether an engine puts instances on hosts, by slots."""
    period_us: int = 1
    """Time between two readings."""
    _deferred: list[_Deferred] = field(default_factory=list)
    _waves: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def from_network(cls, network: QueueingNetwork, host: Capacity) -> SimulatedMonitor:
        topology, rescale = network.topology, network.calibration.rescale
        operators = [topology.operator[name] for name in network.names]
        needs = np.array([(op.cpu_cores, op.memory_mb) for op in operators])
        packs = bool(rescale and rescale.packs)
        if packs:  # an engine divides the memory of a host among its slots
            needs[:, 1] = host.memory_mb / host.slots(topology.operators)
        return cls(
            topology=topology,
            noise=Noise(network.draws, network.calibration, NOISE_WIDTH),
            network=network,
            host=host,
            needs=needs,
            packs=packs,
        )

    def read(self, now_us: int, period_us: int, fleet: VirtualFleet, *, missed: bool) -> None:
        """End a monitoring period.

        Operators record their items themselves; a missed reading loses queues and utilisation.
        """
        operator, instance, _, *times_us = self.network.take_records().T
        done_us, duration_us, wait_us, age_us = times_us
        self.keep_durations(
            operator, duration_us / 1000, instance, done_us / 1e6, wait_us / 1000, age_us / 1000
        )
        per_operator, per_server, busy_share = self.network.read(now_us, period_us)
        self.count_busy(per_server[:, 1], busy_share * period_us / 1e6)
        self.busy_s += self.network.take_left_us() / 1e6
        self.reading.missed = missed
        if missed:
            return
        if self.network.calibration.cpu_in_pause:
            paused = self.network.paused_share(now_us, period_us)[per_server[:, 1]]
        else:
            paused = np.zeros(len(per_server))
        serve_on = [
            server.number for server in fleet.instances.values() if server.killed_us is not None
        ]
        if serve_on:  # stopped, so not ready
            per_server[np.isin(per_server[:, 0], serve_on), 3] = kernel.NEVER
        if self.packs:  # where an instance will run is not known before it runs
            joined = per_server[:, 3] < LATER_US
            per_server, busy_share, paused = per_server[joined], busy_share[joined], paused[joined]
        up = [leased.number for leased in fleet.leased() if leased.up_us <= now_us]
        self._deferred.append(_Deferred(now_us, per_operator, per_server, busy_share, paused, up))
        self.period_us = period_us

    def catch_up(self) -> None:
        """Process all readings since the last call at once, which costs little more than one."""
        if not self._deferred:
            return
        readings, self._deferred = self._deferred, []
        times_us = np.array([reading.now_us for reading in readings])
        per_operator = np.concatenate([reading.per_operator for reading in readings])
        waiting, instances, ready, longest, arrived, completed, oldest_us = per_operator.T
        size = len(self.names)
        self.keep_queues(
            np.repeat(times_us, size), waiting, np.stack([arrived, completed]), instances, ready
        )
        self.reading.waiting = waiting[-size:].tolist()
        # Of buffers no engine says how long the fullest is, or since when its first item waits.
        self.reading.longest = [] if self.network.bounded else longest[-size:].tolist()
        self.reading.oldest_s = [] if self.network.bounded else (oldest_us[-size:] / 1e6).tolist()
        which = np.repeat(
            np.arange(len(readings)), [len(reading.per_server) for reading in readings]
        )
        instance, operator, host, since_us = np.concatenate(
            [reading.per_server for reading in readings]
        ).T
        busy_share = np.concatenate([reading.busy_share for reading in readings])
        there_us = np.minimum(np.maximum(times_us[which] - since_us, 0), self.period_us)
        self.keep_busy(operator, instance, busy_share * self.period_us / 1e6, there_us / 1e6)
        cpu = self._cpu_shares(readings, which, busy_share)
        self._keep_utilisation(readings, which, instance, operator, host, cpu)

    def _keep_utilisation(
        self,
        readings: list[_Deferred],
        which: I64,
        instance: I64,
        operator: I64,
        host: I64,
        cpu: F64,
    ) -> None:
        times_us = np.array([reading.now_us for reading in readings])
        up = np.concatenate([np.array(reading.up, dtype=np.int64) for reading in readings])
        which_up = np.repeat(np.arange(len(readings)), [len(reading.up) for reading in readings])
        cores, memory_mb = self.needs[operator].T
        size, numbers = len(up) + 1, max(host.max(initial=0), up.max(initial=0)) + 1
        place = _places(which * numbers + host, which_up * numbers + up)
        host_cpu = np.bincount(place, cpu * cores, size)[:-1] / self.host.cpu_cores
        host_memory = np.bincount(place, memory_mb, size)[:-1] / self.host.memory_mb
        # Where hosts promise more cores than they have, a meter shows no more than all.
        host_cpu, host_memory = np.minimum(host_cpu.round(4), 1.0), host_memory.round(4)
        self.keep("instance_utilisation", times_us[which], instance, operator, host, cpu)
        instances = np.bincount(place, minlength=size)[:-1]
        self.keep("host_utilisation", times_us[which_up], up, host_cpu, host_memory, instances)
        last, last_up = which == len(readings) - 1, which_up == len(readings) - 1
        held = zip(cpu[last].tolist(), self._memory_shares(operator[last]), strict=True)
        self.reading.instance = dict(zip(instance[last].tolist(), held, strict=True))
        shares = zip(host_cpu[last_up].tolist(), host_memory[last_up].tolist(), strict=True)
        of_hosts = [(*share, None) for share in shares]
        self.reading.host = dict(zip(readings[-1].up, of_hosts, strict=True))

    def _cpu_shares(self, readings: list[_Deferred], which: I64, busy_share: F64) -> F64:
        """CPU shares as an imperfect meter shows them, shape of ``busy_share``."""
        calibration = self.network.calibration
        load = busy_share * calibration.cpu_when_busy
        if calibration.cpu_in_pause:
            paused = np.concatenate([reading.paused for reading in readings])
            load = load + calibration.cpu_in_pause * np.minimum(paused, 1 - busy_share)
        if calibration.cpu_drift:
            drift = np.array([self._drift(reading.now_us / 1e6) for reading in readings])
            load = load * (1 + drift[which])
        noise = [
            np.resize(self.noise.for_reading(one.now_us // self.period_us), len(one.per_server))
            for one in readings
        ]
        # Not clip, which takes ten times as long on so few.
        shares: F64 = np.minimum(np.maximum(load + np.concatenate(noise), 0), 1).round(4)
        return shares

    def _drift(self, now_s: float) -> float:
        """Slow random drift: a sum of waves whose frequencies give the correlation time.

        A function of time, so it does not depend on where windows begin.
        """
        calibration = self.network.calibration
        if self._waves is None:
            generator = self.network.draws.generator("monitor", "drift")
            pace = np.tan(np.pi * (generator.random(WAVES) - 0.5)) / calibration.cpu_drift_s
            self._waves = pace, generator.random(WAVES) * 2 * np.pi
        pace, phase = self._waves
        amplitude = calibration.cpu_drift * np.sqrt(2 / WAVES)
        return float(amplitude * np.cos(pace * now_s + phase).sum())

    def _memory_shares(self, operators: np.ndarray) -> list[float | None]:
        """Memory share of every instance; None if unknown.

        State is divided evenly among the instances of an operator.
        """
        held_mb = self.network.calibration.held_mb
        if not held_mb:
            return [None] * len(operators)
        shares: dict[int, float] = {}
        for o, count in enumerate(np.bincount(operators).tolist()):
            if count and (held := held_mb.get(self.names[o])):
                own_mb, shared_mb = held
                memory_mb = self.topology.operator[self.names[o]].memory_mb
                shares[o] = round(min(1.0, (own_mb + shared_mb / count) / memory_mb), 4)
        return [shares.get(o) for o in operators.tolist()]


def _places(hosts: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Position of each host in ``up`` (ascending); ``len(up)`` for booting hosts."""
    places = np.searchsorted(up, hosts)
    labels = np.append(up, -1)
    places[labels[places] != hosts] = len(up)
    return places
