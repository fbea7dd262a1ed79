"""Load estimates of tide: source rates, propagated to operators, and learned service times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from include.controllers.base import Setting
from include.controllers.tide.repeats import (
    ROUND_AT_LEAST_S,
    ahead,
    remembered,
    round_of,
)
from include.model.observation import Observation, OperatorSample

Array = NDArray[np.float64]

HORIZON_S = 600.0
"""Half-life of service times, mean rates and counts of late items."""
ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class TideMemory:
    """The last valid reading and the estimates; numbers by source or operator.

    ``work_s`` and ``done``: CPU seconds and completed items, exponentially fading, as is
    ``mean_per_s``. ``recent``: rates of all sources, a row per interval, the latest last. The load
    repeats after ``round_steps`` rows (0: it does not). ``counted``: items that arrived and were
    completed since the run began, if the testbed counts them, and the second of that reading.
    ``late`` and ``expected_late``: items, counted and by the loss, exponentially fading.
    ``serving``: ready instances. ``worked_s``: busy seconds since the run began, if the testbed
    counts them.
    """

    seen_s: float = -1.0
    source_per_s: Mapping[str, float] = field(default_factory=dict)
    rate_per_s: Mapping[str, float] = field(default_factory=dict)
    mean_per_s: Mapping[str, float] = field(default_factory=dict)
    recent: tuple[tuple[float, ...], ...] = ()
    round_steps: int = 0
    counted: Mapping[str, tuple[int, int, float]] = field(default_factory=dict)
    waiting: Mapping[str, float] = field(default_factory=dict)
    work_s: Mapping[str, float] = field(default_factory=dict)
    done: Mapping[str, float] = field(default_factory=dict)
    late: Mapping[str, float] = field(default_factory=dict)
    expected_late: Mapping[str, float] = field(default_factory=dict)
    serving: Mapping[str, int] = field(default_factory=dict)
    worked_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Load:
    """Arrays of shape (operators,), in the order of the topology.

    Executions per second that arrive, seconds per execution, waiting items, the fading mean of
    executions per second, a factor of the spare instances that an operator needs, and how many
    late executions one that is late counts as.
    """

    rate_per_s: Array
    service_s: Array
    waiting: Array
    mean_per_s: Array
    reserve: Array
    counts: Array


class Flow:
    """Share of each source's items that reaches each operator; computed once per topology."""

    def __init__(self, setting: Setting) -> None:
        topology = setting.topology
        self._monitor_every_s = setting.monitor_every_s
        self._cpu_shared = setting.flavor.cpu_shared
        self.names = topology.operator_names
        self.row = {name: row for row, name in enumerate(self.names)}
        self.sources = [source.name for source in topology.sources]
        self.per_item: Array = np.zeros((len(self.names), len(self.sources)))
        """Executions of an operator per item of a source. Shape (operators, sources)."""
        for column, source in enumerate(self.sources):
            executions = topology.executions_per_item(source)
            self.per_item[:, column] = [executions[name] for name in self.names]
        origins: dict[str, list[str]] = {name: [] for name in self.names}
        for edge in topology.edges:
            if edge.target in origins:
                origins[edge.target].append(edge.origin)
        self.fed_by: dict[str, list[str]] = {}
        """Operators with this source as their only input: their arrival rate gives its rate."""
        for name, upstream in origins.items():
            if len(upstream) == 1 and upstream[0] in self.sources:
                self.fed_by.setdefault(upstream[0], []).append(name)
        after: dict[str, float] = {}
        for name in reversed(topology.flow_order):
            after[name] = sum(
                edge.items_out / edge.items_in * (1 + after[edge.target])
                for edge in topology.edges
                if edge.origin == name
            )
        self.downstream: Array = np.array([after[name] for name in self.names], dtype=np.float64)
        """Executions at all operators after it that one of an operator leads to."""
        self.slo_s = np.array([topology.operator[name].slo_ms / 1000 for name in self.names])

    def read_s(self, now_s: float) -> float:
        """Time of the last reading of the monitor, up to which items are counted."""
        every_s = self._monitor_every_s
        return (now_s + ROUNDING_S) // every_s * every_s

    def has_other_readings(self, in_s: float) -> bool:
        """Whether CPU shares, which are of the last reading, do not speak for all these seconds.

        Where hosts share their CPU they do all the same: counters have the wait for a core, too.
        """
        return in_s > self._monitor_every_s + ROUNDING_S and not self._cpu_shared

    def source_rates(self, arrived_per_s: Mapping[str, float]) -> dict[str, float]:
        """Items per second by source, where an operator in ``arrived_per_s`` has no other input."""
        return {
            source: arrived_per_s[name] / float(self.per_item[self.row[name], column])
            for column, source in enumerate(self.sources)
            for name in self.fed_by.get(source, ())
            if name in arrived_per_s
        }

    def rates(self, published: Array) -> Array:
        """Executions per second of every operator, for rows of items per second of the sources."""
        # No matrix product: its last bits depend on the machine.
        rates: Array = (self.per_item * published[:, None, :]).sum(axis=2)
        return rates

    def propagated(self, source_per_s: Mapping[str, float]) -> dict[str, float]:
        """Executions per second of the operators whose sources all have a rate."""
        published = np.array([source_per_s.get(source, 0.0) for source in self.sources])
        unread = np.array([source not in source_per_s for source in self.sources])
        has_rate = (self.per_item[:, unread] == 0).all(axis=1)
        rates = self.rates(published[None, :])[0]
        return {name: float(rates[row]) for name, row in self.row.items() if has_rate[row]}


def learned(memory: TideMemory, observation: Observation, flow: Flow, step_s: float) -> TideMemory:
    """Update the memory with an observation; there is one every ``step_s``.

    Estimates of unread operators stay. Old values fade with half-life HORIZON_S. The first
    observation gives no rates, because it is unknown when its counts began.
    """
    if memory.seen_s < 0:
        waiting = {name: _asking(sample) for name, sample in observation.operators.items()}
        return TideMemory(
            seen_s=observation.now_s,
            waiting=waiting,
            counted=_counted(observation, flow.read_s(observation.now_s)),
            worked_s=_worked_s(observation),
        )
    read_s, before_s = flow.read_s(observation.now_s), flow.read_s(memory.seen_s)
    since_s = read_s - before_s
    if since_s <= 0 or not observation.operators:
        return memory
    keep = 0.5 ** (since_s / HORIZON_S)
    counted = _counted(observation, read_s)
    items = {
        name: _items(sample, counted, memory.counted, since_s)
        for name, sample in observation.operators.items()
    }
    arrived = {name: came / seconds for name, (came, _, seconds) in items.items()}
    source_per_s = dict(memory.source_per_s) | flow.source_rates(arrived)
    rate = dict(memory.rate_per_s) | arrived | flow.propagated(source_per_s)
    published = [source_per_s.get(source, 0.0) for source in flow.sources]
    steps = round(read_s / step_s) - round(before_s / step_s)
    recent = remembered(memory.recent, published, steps, step_s)
    looks_back = observation.now_s // ROUND_AT_LEAST_S > memory.seen_s // ROUND_AT_LEAST_S
    in_s = {name: seconds for name, (_, _, seconds) in items.items()}
    busy_s, worked_s = _busy_s(observation, in_s), _worked_s(observation)
    metered = _metered(observation)
    for name in busy_s:
        unread = name not in metered or not busy_s[name]
        # Of one that was not there at the last look, the counter has more than its items.
        before_s = memory.worked_s.get(name, 0.0 if unread else np.inf)
        is_counted = before_s <= worked_s.get(name, -1.0)
        if is_counted and (unread or flow.has_other_readings(in_s[name])):
            busy_s[name] = worked_s[name] - before_s
        elif unread and not memory.work_s.get(name):
            shortest_ms = min(observation.operators[name].durations_ms, default=0)
            busy_s[name] = items[name][1] * shortest_ms / 1000
    waiting, work_s, done = dict(memory.waiting), dict(memory.work_s), dict(memory.done)
    for name, sample in observation.operators.items():
        waiting[name] = _asking(sample)
        # Of one that has nothing to do, seconds are no work: they would add up while items fade.
        fades, adds = (keep, 1) if any(items[name][:2]) or sample.waiting_items else (1.0, 0)
        work_s[name] = work_s.get(name, 0.0) * fades + busy_s[name] * adds
        done[name] = done.get(name, 0.0) * fades + items[name][1]
    return replace(
        memory,
        seen_s=observation.now_s,
        source_per_s=source_per_s,
        rate_per_s=rate,
        mean_per_s=_mean(memory.mean_per_s, rate, keep),
        recent=recent,
        round_steps=round_of(recent, step_s) if looks_back else memory.round_steps,
        counted={**memory.counted, **counted},
        worked_s={**memory.worked_s, **worked_s},
        waiting=waiting,
        work_s=work_s,
        done=done,
    )


def _asking(sample: OperatorSample) -> float:
    """Waiting items, less the share of time in which no instance worked on them.

    What waits because instances pause, stall or meet a full buffer, more instances do not work off.
    """
    return sample.waiting_items * (1.0 if sample.busy_share is None else sample.busy_share)


def _busy_s(observation: Observation, in_s: Mapping[str, float]) -> dict[str, float]:
    """Busy seconds by operator, summed over its instances, from their CPU use ``in_s``."""
    busy_s = dict.fromkeys(observation.operators, 0.0)
    for instance in observation.instances.values():
        if instance.cpu_share is not None and instance.operator in busy_s:
            busy_s[instance.operator] += instance.cpu_share * in_s[instance.operator]
    return busy_s


def _metered(observation: Observation) -> set[str]:
    """Operators for whose instances there are all CPU readings."""
    every = set(observation.operators)
    return every - {
        instance.operator
        for instance in observation.instances.values()
        if instance.cpu_share is None
    }


def _worked_s(observation: Observation) -> dict[str, float]:
    """Busy seconds since the run began, where the testbed counts them."""
    return {
        name: sample.busy_in_all_s
        for name, sample in observation.operators.items()
        if sample.busy_in_all_s is not None
    }


def _counted(observation: Observation, read_s: float) -> dict[str, tuple[int, int, float]]:
    """Items that arrived and were completed since the run began, where the testbed counts them.

    With the second of the reading.
    """
    return {
        name: (sample.arrived_in_all, sample.completed_in_all, read_s)
        for name, sample in observation.operators.items()
        if sample.arrived_in_all is not None and sample.completed_in_all is not None
    }


def _items(
    sample: OperatorSample,
    now: Mapping[str, tuple[int, int, float]],
    before: Mapping[str, tuple[int, int, float]],
    since_s: float,
) -> tuple[int, int, float]:
    """Items that arrived and were completed since the operator was last read, and seconds since.

    Differences of total counts do not depend on other observers. Other counts are of ``since_s``.
    """
    name = sample.operator
    if name in now and name in before:
        (arrived, completed, read_s), (arrived_then, completed_then, then_s) = (
            now[name],
            before[name],
        )
        return arrived - arrived_then, completed - completed_then, read_s - then_s
    return sample.arrived_items, sample.completed_items, since_s


def _mean(before: Mapping[str, float], now: Mapping[str, float], keep: float) -> dict[str, float]:
    """Exponential moving average; ``keep`` is the weight of ``before``."""
    return {name: keep * before.get(name, rate) + (1 - keep) * rate for name, rate in now.items()}


def load_of(memory: TideMemory, flow: Flow) -> Load:
    """The estimated load. Without completed items an operator's service time is its o_slo.

    One whose instances did nothing so far has no load: its service time may be far below o_slo.
    """
    columns = [
        [remembered.get(name, 0.0) for name in flow.names]
        for remembered in (
            memory.rate_per_s,
            memory.mean_per_s,
            memory.waiting,
            memory.work_s,
            memory.done,
        )
    ]
    rate, mean, waiting, work_s, done = (np.array(column) for column in columns)
    rate, mean, waiting = (each * _worked(memory, flow) for each in (rate, mean, waiting))
    measured = (done > 0) & (work_s > 0)
    service_s = np.where(measured, work_s / np.where(measured, done, 1.0), flow.slo_s)
    return Load(rate, service_s, waiting, mean, np.ones_like(rate), np.ones_like(rate))


def _worked(memory: TideMemory, flow: Flow) -> NDArray[np.bool_]:
    """Which operators did something so far."""
    return np.array(
        [memory.done.get(n, 0.0) > 0 or memory.work_s.get(n, 0.0) > 0 for n in flow.names]
    )


def expected(load: Load, memory: TideMemory, flow: Flow, steps: int) -> Load:
    """The highest rates now and in the next ``steps``, if the load repeats."""
    published = ahead(memory.recent, memory.round_steps, steps)
    if not len(published):
        return load
    rates = flow.rates(published).max(axis=0) * _worked(memory, flow)
    return replace(load, rate_per_s=np.maximum(load.rate_per_s, rates))
