"""What the monitor reads of queues that are followed item by item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.model.host import Capacity
from include.testbeds.simulated import kernel, rings
from include.testbeds.simulated.network import QueueingNetwork
from include.testbeds.virtual.fleet import VirtualFleet, there_for_s
from include.testbeds.virtual.monitor import Noise, VirtualMonitor, late_ms

NOISE_WIDTH = 128
WAVES = 24


@dataclass(slots=True, kw_only=True)
class SimulatedMonitor(VirtualMonitor):
    """Reads a network and a fleet."""

    network: QueueingNetwork
    host: Capacity
    """What instances may use of a host."""
    needs: np.ndarray
    """(operators, 2): cores and MB that an instance reserves."""
    _waves: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(cls, network: QueueingNetwork, host: Capacity) -> SimulatedMonitor:
        """A monitor of a network that has read nothing."""
        noise = Noise(network.draws, network.calibration.cpu_noise, NOISE_WIDTH)
        operators = [network.topology.operator[name] for name in network.names]
        return cls(
            names=network.names,
            order=network.topology.operator_names,
            homes=tuple(op.runs_in or op.name for op in operators),
            late_ms=late_ms(operators),
            noise=noise,
            network=network,
            host=host,
            needs=np.array([(op.cpu_cores, op.memory_mb) for op in operators]),
        )

    def read(self, now_us: int, period_us: int, fleet: VirtualFleet, *, missed: bool) -> None:
        """One monitoring period ends now.

        Items are recorded by the operators themselves whether or not the monitor answers; a
        missed reading loses queues and utilisation.
        """
        operator, instance, _, *times_us = self.network.take_records().T
        done_us, duration_us, wait_us, age_us = times_us
        self.keep_durations(
            operator, duration_us / 1000, instance, done_us / 1e6, wait_us / 1000, age_us / 1000
        )
        per_operator, per_server, busy_share = self.network.read(now_us, period_us)
        instance, operator, _ = per_server.T
        self.count_busy(operator, busy_share * period_us / 1e6)
        self.reading.missed = missed
        if missed:
            return
        waiting, instances, ready, longest = per_operator.T
        nodes = self.network.state.nodes[: len(waiting)]
        arrived = nodes[:, kernel.NUMBERED] - nodes[:, kernel.ORPHANS] + waiting
        counted = np.stack([arrived, nodes[:, kernel.COMPLETED]])
        self.keep_queues(now_us, waiting, counted, instances, ready)
        self.reading.waiting = waiting.tolist()
        self.reading.longest = longest.tolist()
        self.reading.oldest_s = self._oldest_s(now_us)
        self._read_utilisation(now_us, period_us, fleet, per_server, busy_share)
        there_s = there_for_s(fleet, instance, now_us, period_us)
        self.keep_busy(operator, instance, busy_share * period_us / 1e6, there_s)

    def _oldest_s(self, now_us: int) -> list[float]:
        """How long the first item of the operator's edges has been there: they are in order."""
        state = self.network.state
        head, tail = state.edges[:, rings.HEAD], state.edges[:, rings.TAIL]
        arrived_us = np.full(len(head), now_us)
        some = tail > head
        arrived_us[some] = state.items[head[some], rings.ARRIVAL]
        first_us = np.minimum.reduceat(arrived_us, state.in_first[:-1])
        oldest_s: list[float] = ((now_us - first_us).clip(0) / 1e6).tolist()
        return oldest_s

    def _read_utilisation(
        self,
        now_us: int,
        period_us: int,
        fleet: VirtualFleet,
        per_server: np.ndarray,
        busy_share: np.ndarray,
    ) -> None:
        instance, operator, host = per_server.T
        load = self._load(now_us, period_us, operator, busy_share)
        noise = self.noise.of(now_us // period_us)
        noise = noise[: host.size] if host.size <= noise.size else np.resize(noise, host.size)
        cpu = (load + noise).clip(0, 1).round(4)
        up = np.array([one.number for one in fleet.leased() if one.up_us <= now_us], dtype=int)
        cores, memory_mb = self.needs[operator].T
        size = len(up) + 1
        place = _places(host, up)
        host_cpu = np.bincount(place, cpu * cores, size)[:-1] / self.host.cpu_cores
        host_memory = np.bincount(place, memory_mb, size)[:-1] / self.host.memory_mb
        host_cpu, host_memory = host_cpu.round(4), host_memory.round(4)
        held = zip(cpu.tolist(), self._memory_shares(operator), strict=True)
        self.reading.instance = dict(zip(instance.tolist(), held, strict=True))
        shares = [(*one, None) for one in zip(host_cpu.tolist(), host_memory.tolist(), strict=True)]
        self.reading.host = dict(zip(up.tolist(), shares, strict=True))
        self.keep("instance_utilisation", now_us, instance, operator, host, cpu)
        instances = np.bincount(place, minlength=size)[:-1]
        self.keep("host_utilisation", now_us, up, host_cpu, host_memory, instances)

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

    def _memory_shares(self, operators: np.ndarray) -> list[float | None]:
        """The memory share of every instance; None where nothing is known.

        State is spread evenly over the instances of an operator.
        """
        held_mb = self.network.calibration.held_mb
        if not held_mb:
            return [None] * len(operators)
        topology = self.network.topology
        count = np.bincount(operators, minlength=len(self.names)).tolist()
        shares: list[float | None] = []
        for o in operators.tolist():
            held = held_mb.get(self.names[o])
            share = None
            if held is not None:
                own_mb, shared_mb = held
                memory_mb = topology.operator[self.names[o]].memory_mb
                share = round(min(1.0, (own_mb + shared_mb / count[o]) / memory_mb), 4)
            shares.append(share)
        return shares


def _places(hosts: np.ndarray, up: np.ndarray) -> np.ndarray:
    """The place of each host among those that are up (ascending), or how many these are.

    Hosts that boot hold instances, too, but nobody reads them.
    """
    places = np.searchsorted(up, hosts)
    known = np.append(up, -1)
    places[known[places] != hosts] = len(up)
    return places
