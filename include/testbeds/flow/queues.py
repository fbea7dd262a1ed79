"""The queues of a run: drives the kernel from step to step, and keeps what it measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from include.testbeds.base import TestbedConfig
from include.testbeds.flow import arrivals, kernel
from include.testbeds.flow.arrays import (
    ARRIVED,
    CD2,
    CHUNKS,
    COMPLETED,
    F64,
    I64,
    MICRO,
    R_NUMBER,
    R_OPERATOR,
    START,
    Graph,
    Meter,
    QueueState,
    Scratch,
    Segment,
)
from include.testbeds.flow.calibration import FlowCalibration, FlowFaults
from include.testbeds.flow.cloud import FlowCloud
from include.testbeds.flow.layout import Planner, Serving
from include.testbeds.virtual.cloud import us
from include.testbeds.virtual.draws import Draws
from include.testbeds.virtual.jit import start_numba
from include.testbeds.virtual.key_groups import sizes_of_keys

FIRST_ROWS = 4096
KEPT = ("counts", "sent", "inbound")
"""Arrays of the state that a snapshot keeps as they are."""


def step_us_of(config: TestbedConfig, calibration: FlowCalibration) -> int:
    """The longest step up to ``step_s`` of which whole ones fill a monitoring period."""
    period_us = us(config.monitor_every_s)
    steps = -(-period_us // us(calibration.step_s))
    while period_us % steps:
        steps += 1
    return period_us // steps


@dataclass(slots=True)
class FluidQueues:
    """Queues, who serves them now, and what was measured since somebody asked."""

    config: TestbedConfig
    calibration: FlowCalibration
    faults: FlowFaults
    draws: Draws
    cloud: FlowCloud
    names: tuple[str, ...]
    """Operators in flow order: the rows of all arrays."""
    step_us: int = field(init=False)
    step: int = 0
    """Steps done since the run began."""
    edges: tuple[tuple[str, str], ...] = field(init=False)
    """(origin, target) of each edge, in the order of the arrays."""
    graph: Graph = field(init=False)
    state: QueueState = field(init=False)
    meter: Meter = field(init=False)
    used_s: F64 = field(init=False)
    """(instances started, 2): CPU and busy seconds by number, of layouts that have ended."""
    operator_of: I64 = field(init=False)
    """(instances started,): row by number, of instances that have served."""
    host_used_s: F64 = field(init=False)
    _planner: Planner = field(init=False)
    _serving: Serving | None = None
    _published: I64 = field(init=False)
    _stalls_us: I64 = field(init=False)
    _scratch: Scratch = field(init=False)

    def __post_init__(self) -> None:
        start_numba()
        config, calibration = self.config, self.calibration
        self.step_us = step_us_of(config, calibration)
        self.graph, targets = _graph(config, calibration, self.names, self.step_us / 1e6)
        nodes = [*self.names, *(source.name for source in config.topology.sources)]
        pairs = zip(self.graph.origin.tolist(), targets.tolist(), strict=True)
        self.edges = tuple((nodes[origin], nodes[target]) for origin, target in pairs)
        self._published = arrivals.published(config, calibration, self.step_us, self.draws)
        operators, edges = len(self.names), targets.size
        self.state = QueueState(
            counts=_zeros(operators, 3),
            sent=_zeros(edges),
            chunk_items=_zeros(operators, CHUNKS, 2),
            chunk_age=np.zeros((operators, CHUNKS, 4)),
            chunk_range=_zeros(operators, 2),
            inbound=np.zeros((operators, 2)),
        )
        local_ms = calibration.local_latency_ms
        self._planner = Planner(
            graph=self.graph,
            targets=targets,
            vcpus=config.flavor.vcpus,
            overhead_cores=calibration.overhead_cores,
            latency_s=calibration.latency_ms / 1000,
            local_latency_s=(calibration.latency_ms if local_ms is None else local_ms) / 1000,
            group_sizes={
                o: self._group_sizes(name, groups)
                for o, name in enumerate(self.names)
                if (groups := calibration.key_groups.get(name))
            },
        )
        self.used_s, self.host_used_s = np.zeros((1, 2)), np.zeros((1, 2))
        self.operator_of = _zeros(1)
        self.meter = Meter(
            pairs=np.zeros((0, 2)),
            hosts=np.zeros((0, 2)),
            sinks=np.zeros((operators, 3)),
            random_items=np.zeros(operators),
            sample=np.zeros(7),
            rows=_zeros(FIRST_ROWS, 3),
            values=np.zeros((FIRST_ROWS, 7)),
            recorded=_zeros(1),
        )
        self._stalls_us = self._stalls()

    def _group_sizes(self, operator: str, groups: int) -> F64:
        keyed = self.config.topology.operator[operator].keyed
        return sizes_of_keys(keyed, groups) if keyed else np.ones(groups)

    def run_to(self, step: int) -> None:
        """Do all steps before ``step``."""
        while self.step < step:
            serving = self._serving or self._serve()
            change = -(-serving.until_us // self.step_us)
            end = min(step, change)
            segment, layout = self._segment(end), serving.layout
            self.step += kernel.advance(
                self.graph, self.state, layout, segment, self.meter, self._scratch
            )
            if self.step < end:
                self._more_rows()
            elif self.step >= change:
                self.reorder()

    def reorder(self) -> None:
        """Hosts or instances changed: book what was used so far, and look again who serves."""
        self._book()
        self._serving = None

    def _book(self) -> None:
        self.used_s = _grown(self.used_s, self.cloud.fleet.instances_started + 1)
        self.operator_of = _grown(self.operator_of, self.cloud.fleet.instances_started + 1)
        self.host_used_s = _grown(self.host_used_s, self.cloud.fleet.hosts_leased + 1)
        if serving := self._serving:
            self.operator_of[serving.instances] = serving.layout.pair_operator[serving.pair_of]
            used_s = self.meter.pairs[serving.pair_of] * serving.load[:, None]
            self.used_s[serving.instances] += used_s
            self.host_used_s[serving.hosts] += self.meter.hosts
            self.meter.pairs[:], self.meter.hosts[:] = 0.0, 0.0

    def take_used(self) -> tuple[F64, F64]:
        """CPU and busy seconds per instance number and host number since the last call."""
        self._book()
        used_s, host_used_s = self.used_s, self.host_used_s
        self.used_s, self.host_used_s = np.zeros_like(used_s), np.zeros_like(host_used_s)
        return used_s, host_used_s

    def take_rows(self) -> tuple[I64, F64]:
        """Sampled items since the last call, by operator and number."""
        count = self.meter.recorded[0]
        rows, values = self.meter.rows[:count].copy(), self.meter.values[:count].copy()
        self.meter.recorded[0] = 0
        order = np.lexsort((rows[:, R_NUMBER], rows[:, R_OPERATOR]))
        return rows[order], values[order]

    def take_sinks(self) -> F64:
        """Items that left each operator that is a sink since the last call; see the kernel."""
        sinks = self.meter.sinks.copy()
        self.meter.sinks[:] = 0.0
        return sinks

    def waiting_items(self) -> I64:
        """Whole items in front of each operator: a backlog, what rests, waits by chance."""
        counts = self.state.counts
        backlog = (counts[:, ARRIVED] - counts[:, COMPLETED]) // MICRO
        return np.asarray(backlog + self.meter.random_items.astype(np.int64))

    def oldest_s(self, now_s: float) -> list[float]:
        """How long the backlog of each operator has been there, to a step; 0 without one.

        What randomness adds to a queue is there for a moment only, so it does not count.
        """
        state, rows = self.state, np.arange(len(self.names))
        head, tail = state.chunk_range.T
        came_s = state.chunk_age[rows, np.minimum(head, CHUNKS - 1), START]
        behind = state.counts[:, ARRIVED] - state.counts[:, COMPLETED] >= MICRO
        oldest_s: list[float] = np.where(behind & (tail > head), now_s - came_s, 0.0).tolist()
        return oldest_s

    def whole_items(self) -> I64:
        """Items that arrived at and were completed by each operator so far. Shape (2, n)."""
        return np.asarray(self.state.counts[:, :2].T // MICRO)

    def published_items(self) -> I64:
        """Whole items that each source has published so far."""
        return np.asarray(self._published[min(self.step, len(self._published) - 1)] // MICRO)

    def _serve(self) -> Serving:
        serving = self._planner.serving(self.cloud.fleet, self.step * self.step_us)
        pairs, hosts = serving.layout.pair_host.size, serving.hosts.size
        self._serving = serving
        self.meter = self.meter._replace(pairs=np.zeros((pairs, 2)), hosts=np.zeros((hosts, 2)))
        operators, nodes = len(self.names), len(self.names) + len(self.config.topology.sources)
        flow = np.zeros((nodes, 3))
        flow[operators:, CD2] = self.calibration.arrival_cv**2
        self._scratch = Scratch(
            want=_zeros(operators),
            most=_zeros(operators),
            carry=_zeros(len(self.edges)),
            release=_zeros(operators),
            busy=np.zeros(operators),
            flow=flow,
            grant=np.zeros(pairs),
            extra=np.zeros(pairs),
            load=np.zeros(hosts),
            spread=np.zeros(hosts),
            squares=np.zeros(hosts),
            highest=np.zeros(hosts),
            fair=np.zeros(hosts),
            speed=np.zeros(hosts),
            host_extra=np.zeros(hosts),
        )
        return serving

    def _segment(self, end: int) -> Segment:
        first, step_us = self.step, self.step_us
        starts_us = np.arange(first, end) * step_us
        open_share = np.ones((end - first, len(self.names)))
        pauses_us = [pause[:3] for pause in self.cloud.pauses_us]
        for o, from_us, until_us in [*pauses_us, *self._stalls_between(first, end)]:
            open_share[:, o] -= _overlap(starts_us, step_us, from_us, until_us)
        slower = np.ones(end - first)
        for from_us, until_us, factor in self.cloud.hot_us:
            slower += (factor - 1) * _overlap(starts_us, step_us, from_us, until_us)
        background = np.full(end - first, float(self.calibration.background_cores))
        for start_s, end_s, cores in self.faults.cpu_spikes:
            background += cores * _overlap(starts_us, step_us, us(start_s), us(end_s))
        last = len(self._published) - 1
        rows = np.minimum(np.arange(first, end + 1), last)
        return Segment(first, open_share.clip(0, 1), slower, background, self._published[rows])

    def _stalls(self) -> I64:
        """Periods in which an operator does nothing: (n, 3), operator, from and until."""
        rate, length_s = self.calibration.stalls_per_hour, self.calibration.stall_s
        end_us = us(self.config.duration_s)
        stalls = [
            (o, *period)
            for o, name in enumerate(self.names if rate else ())
            for period in self.draws.periods("stall", name, rate, length_s, end_us)
        ]
        return np.array(stalls, dtype=np.int64).reshape(-1, 3)

    def _stalls_between(self, first: int, end: int) -> list[tuple[int, int, int]]:
        _, from_us, until_us = self._stalls_us.T
        inside = (from_us < end * self.step_us) & (until_us > first * self.step_us)
        return [tuple(stall) for stall in self._stalls_us[inside].tolist()]

    def _more_rows(self) -> None:
        self.meter = self.meter._replace(
            rows=_grown(self.meter.rows, 2 * len(self.meter.rows)),
            values=_grown(self.meter.values, 2 * len(self.meter.values)),
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """What cannot be computed again from the spec, as arrays."""
        state, meter, count = self.state, self.meter, self.meter.recorded[0]
        spans = [slice(head, tail) for head, tail in state.chunk_range.tolist()]
        arrays = {
            "step": np.array([self.step]),
            **{name: getattr(state, name) for name in KEPT},
            "chunks": np.diff(state.chunk_range, axis=1)[:, 0],
            "chunk_items": np.concatenate([state.chunk_items[o, at] for o, at in enumerate(spans)]),
            "chunk_age": np.concatenate([state.chunk_age[o, at] for o, at in enumerate(spans)]),
            "sinks": meter.sinks,
            "random_items": meter.random_items,
            "rows": meter.rows[:count],
            "values": meter.values[:count],
            "pairs": meter.pairs,
            "hosts": meter.hosts,
            "serving": np.array([int(self._serving is not None)]),
            "serving_hosts": self._serving.hosts if self._serving else _zeros(0),
            "used_s": self.used_s,
            "operator_of": self.operator_of,
            "host_used_s": self.host_used_s,
        }
        return {name: array.copy() for name, array in arrays.items()}

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from :meth:`arrays` of queues of the same run."""
        self.step = int(arrays["step"][0])
        state, counts = self.state, arrays["chunks"]
        for name in KEPT:
            getattr(state, name)[:] = arrays[name]
        first = np.concatenate([[0], np.cumsum(counts)])
        for o, count in enumerate(counts.tolist()):
            state.chunk_items[o, :count] = arrays["chunk_items"][first[o] : first[o + 1]]
            state.chunk_age[o, :count] = arrays["chunk_age"][first[o] : first[o + 1]]
        state.chunk_range[:, 0], state.chunk_range[:, 1] = 0, counts
        count = len(arrays["rows"])
        while count > len(self.meter.rows):
            self._more_rows()
        self.meter.rows[:count], self.meter.values[:count] = arrays["rows"], arrays["values"]
        self.meter.recorded[0] = count
        self.meter.sinks[:], self.meter.random_items[:] = arrays["sinks"], arrays["random_items"]
        self.used_s, self.host_used_s = arrays["used_s"].copy(), arrays["host_used_s"].copy()
        self.operator_of = arrays["operator_of"].copy()
        if arrays["serving"][0]:
            self._resume(arrays)

    def _resume(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take up a layout in the middle: nothing has come or gone, but hosts may have ended."""
        serving = self._serve()
        rows = np.searchsorted(arrays["serving_hosts"], serving.hosts)
        self.meter.pairs[:] = arrays["pairs"]
        self.meter.hosts[:] = arrays["hosts"][rows]


def _graph(
    config: TestbedConfig, calibration: FlowCalibration, names: tuple[str, ...], step_s: float
) -> tuple[Graph, I64]:
    topology, flavor = config.topology, config.flavor
    nodes = {name: n for n, name in enumerate([*names, *(s.name for s in topology.sources)])}
    edges = sorted(topology.edges, key=lambda e: (nodes[e.target], nodes[e.origin]))
    targets = np.array([nodes[e.target] for e in edges], dtype=np.int64)
    origin = np.array([nodes[e.origin] for e in edges], dtype=np.int64)
    # Where CPU is shared an instance runs on a core; elsewhere it has what it reserved.
    cores = [1.0 if flavor.cpu_shared else topology.operator[name].cpu_cores for name in names]
    graph = Graph(
        in_first=np.searchsorted(targets, np.arange(len(names) + 1)).astype(np.int64),
        origin=origin,
        ratio=np.array([(e.items_out, e.items_in) for e in edges], dtype=np.int64),
        sink=(~np.isin(np.arange(len(names)), origin)).astype(np.int64),
        service_s=np.array([calibration.service_ms[name] for name in names]) / 1000,
        cores=np.array(cores),
        rest_s=np.array([calibration.rest_s.get(name, 0.0) for name in names]),
        pass_s=np.array([calibration.pass_s.get(name, 0.0) for name in names]),
        step_s=step_s,
        service_cv=float(calibration.service_cv),
        settle_s=float(calibration.settle_s),
        sample_every=calibration.sample_every_items,
        own_queues=calibration.own_queues,
        input_limit=calibration.input_items * MICRO,
    )
    return graph, targets


def _overlap(starts_us: I64, step_us: int, from_us: int, until_us: int) -> F64:
    """The share of each step that a period covers."""
    covered = np.minimum(starts_us + step_us, until_us) - np.maximum(starts_us, from_us)
    return np.asarray(covered.clip(0) / step_us)


def _grown(array: np.ndarray, length: int) -> np.ndarray:
    """``array``, extended to ``length`` rows by zeros where it is shorter."""
    if len(array) >= length:
        return array
    return np.concatenate([array, np.zeros((length - len(array), *array.shape[1:]), array.dtype)])


def _zeros(*shape: int) -> I64:
    return np.zeros(shape, dtype=np.int64)
