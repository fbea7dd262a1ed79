"""What tide knows of a load: rates of sources, propagated, and service times, learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from include.controllers.base import Setting
from include.controllers.tide.repeats import WAVERING_S, ahead, remembered, round_of, wavers
from include.model.observation import Observation, OperatorSample

Array = NDArray[np.float64]

ROUNDING_S = 1e-6
LOOKS_BACK_S = 120.0
"""So often is it asked whether the load repeats: the answer is dear, and seldom another."""


@dataclass(frozen=True, slots=True)
class TideMemory:
    """The last good reading and what was learned; numbers by source or operator.

    ``work_s`` and ``done`` are CPU seconds and completed items, both fading, ``mean_per_s`` mean
    rates. ``recent`` are rates of all sources, one row for every interval, the latest last; after
    ``round_steps`` of them the load comes again (0: it does not); it ``wavers`` if the last minutes
    say more of what comes than the last of them. ``counted`` are items that arrived and were
    completed since the run began, as far as anybody counts them.
    """

    seen_s: float = -1.0
    source_per_s: Mapping[str, float] = field(default_factory=dict)
    rate_per_s: Mapping[str, float] = field(default_factory=dict)
    mean_per_s: Mapping[str, float] = field(default_factory=dict)
    recent: tuple[tuple[float, ...], ...] = ()
    round_steps: int = 0
    wavers: bool = False
    counted: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    waiting: Mapping[str, float] = field(default_factory=dict)
    work_s: Mapping[str, float] = field(default_factory=dict)
    done: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Load:
    """Per operator, in the order of the topology: executions per second that arrive, seconds per
    execution, items that wait, and executions per second on average, fading as well."""

    rate_per_s: Array
    service_s: Array
    waiting: Array
    mean_per_s: Array


class Flow:
    """How items of sources reach operators; made once for a topology."""

    def __init__(self, setting: Setting) -> None:
        """Follow the edges."""
        topology = setting.topology
        self._monitor_every_s = setting.monitor_every_s
        self.cores_at_most = min(1.0, setting.flavor.vcpus)
        """Of an instance that works all the time: a host of half a core has no more to give."""
        self.names = topology.operator_names
        self.row = {name: row for row, name in enumerate(self.names)}
        self.sources = [source.name for source in topology.sources]
        self.per_item: Array = np.zeros((len(self.names), len(self.sources)))
        """Executions of an operator per item of a source. Shape (operators, sources)."""
        for column, source in enumerate(topology.sources):
            alone = dict.fromkeys(topology.source, 0.0) | {source.name: 1 / source.items_per_level}
            items = topology.items_per_period(alone)
            self.per_item[:, column] = [items[name] for name in self.names]
        origins: dict[str, list[str]] = {name: [] for name in self.names}
        for edge in topology.edges:
            if edge.target in origins:
                origins[edge.target].append(edge.origin)
        self.fed_by: dict[str, list[str]] = {}
        """Operators that a source alone feeds, so that their arrivals are the source's."""
        for name, of in origins.items():
            if len(of) == 1 and of[0] in self.sources:
                self.fed_by.setdefault(of[0], []).append(name)
        self.slo_s = np.array([topology.operator[name].slo_ms / 1000 for name in self.names])
        unread = np.array([source not in self.fed_by for source in self.sources])
        self._known: NDArray[np.bool_] = (self.per_item[:, unread] == 0).all(axis=1)
        """Operators all of whose items come from sources whose rate can be read."""

    def read_s(self, now_s: float) -> float:
        """When the monitor last read, which is as of when items are counted."""
        every_s = self._monitor_every_s
        return (now_s + ROUNDING_S) // every_s * every_s

    def source_rates(self, arrived_per_s: Mapping[str, float]) -> dict[str, float]:
        """Items per second of the sources that an operator which was read is fed by alone."""
        return {
            source: arrived_per_s[name] / float(self.per_item[self.row[name], column])
            for column, source in enumerate(self.sources)
            for name in self.fed_by.get(source, ())
            if name in arrived_per_s
        }

    def rates(self, published: Array) -> Array:
        """Executions per second of every operator, for rows of items per second of the sources."""
        # Not by a product of matrices, whose last bits depend on the machine.
        rates: Array = (self.per_item * published[:, None, :]).sum(axis=2)
        return rates

    def propagated(self, source_per_s: Mapping[str, float]) -> dict[str, float]:
        """Executions per second of the operators all of whose sources can be read."""
        published = np.array([source_per_s.get(source, 0.0) for source in self.sources])
        rates = self.rates(published[None, :])[0]
        return {name: float(rates[row]) for name, row in self.row.items() if self._known[row]}


def learned(
    memory: TideMemory, seen: Observation, flow: Flow, horizon_s: float, step_s: float
) -> TideMemory:
    """The memory after an observation, one every ``step_s``; what was not read stays as it was.

    What is older than ``horizon_s`` fades. The first observation says what waits, and no rates:
    nobody knows since when its items were counted.
    """
    if memory.seen_s < 0:
        waiting = {name: float(one.waiting_items) for name, one in seen.operators.items()}
        return TideMemory(seen_s=seen.now_s, waiting=waiting, counted=_counted(seen))
    since_s = flow.read_s(seen.now_s) - flow.read_s(memory.seen_s)
    if since_s <= 0 or not seen.operators:
        return memory
    keep = 0.5 ** (since_s / horizon_s)
    counted = _counted(seen)
    items = {name: _items(one, counted, memory.counted) for name, one in seen.operators.items()}
    arrived = {name: came / since_s for name, (came, _) in items.items()}
    source_per_s = dict(memory.source_per_s) | flow.source_rates(arrived)
    rate = dict(memory.rate_per_s) | arrived | flow.propagated(source_per_s)
    published = [source_per_s.get(source, 0.0) for source in flow.sources]
    recent = remembered(memory.recent, published, since_s, step_s)
    looks_back = seen.now_s // LOOKS_BACK_S > memory.seen_s // LOOKS_BACK_S
    busy_s = _busy_s(seen, flow, since_s)
    if not memory.work_s:
        # Where no CPU was read so far, items took what the fastest one took that was recorded.
        for name in busy_s.keys() - _metered(seen):
            busy_s[name] = items[name][1] * min(seen.operators[name].durations_ms, default=0) / 1000
    waiting, work_s, done = dict(memory.waiting), dict(memory.work_s), dict(memory.done)
    for name, sample in seen.operators.items():
        waiting[name] = float(sample.waiting_items)
        work_s[name] = work_s.get(name, 0.0) * keep + busy_s[name]
        done[name] = done.get(name, 0.0) * keep + items[name][1]
    return replace(
        memory,
        seen_s=seen.now_s,
        source_per_s=source_per_s,
        rate_per_s=rate,
        mean_per_s=_mean(memory.mean_per_s, rate, keep),
        recent=recent,
        round_steps=round_of(recent, step_s) if looks_back else memory.round_steps,
        wavers=wavers(recent, step_s) if looks_back else memory.wavers,
        counted={**memory.counted, **counted},
        waiting=waiting,
        work_s=work_s,
        done=done,
    )


def _busy_s(seen: Observation, flow: Flow, since_s: float) -> dict[str, float]:
    """Seconds that the instances of an operator worked, all together, by the CPU that they used.

    Where only CPU is metered (nobody counts the time that they work), one that works all the time
    has used no more of a core than its host has.
    """
    busy_s = dict.fromkeys(seen.operators, 0.0)
    for one in seen.instances.values():
        if one.cpu_share is not None and one.operator in busy_s:
            metered = seen.operators[one.operator].busy_in_all_s is None
            share = one.cpu_share / flow.cores_at_most if metered else one.cpu_share
            busy_s[one.operator] += share * since_s
    return busy_s


def _metered(seen: Observation) -> set[str]:
    """Operators without an instance whose CPU could not be read yet."""
    every = set(seen.operators)
    return every - {one.operator for one in seen.instances.values() if one.cpu_share is None}


def _counted(seen: Observation) -> dict[str, tuple[int, int]]:
    """Items that arrived and were completed since the run began, where somebody counts them."""
    return {
        name: (one.arrived_in_all, one.completed_in_all)
        for name, one in seen.operators.items()
        if one.arrived_in_all is not None and one.completed_in_all is not None
    }


def _items(
    one: OperatorSample, now: Mapping[str, tuple[int, int]], before: Mapping[str, tuple[int, int]]
) -> tuple[int, int]:
    """Items that arrived and were completed since the last look of this controller.

    Counts since the beginning do not depend on who else observes.
    """
    name = one.operator
    if name in now and name in before:
        return now[name][0] - before[name][0], now[name][1] - before[name][1]
    return one.arrived_items, one.completed_items


def _mean(before: Mapping[str, float], now: Mapping[str, float], keep: float) -> dict[str, float]:
    """Mean rates, of which the share ``keep`` is what they were before."""
    return {name: keep * before.get(name, rate) + (1 - keep) * rate for name, rate in now.items()}


def load_of(memory: TideMemory, flow: Flow) -> Load:
    """The load as remembered; an operator of which nothing was completed takes its o_slo."""
    of = [
        [known.get(name, 0.0) for name in flow.names]
        for known in (
            memory.rate_per_s,
            memory.mean_per_s,
            memory.waiting,
            memory.work_s,
            memory.done,
        )
    ]
    rate, mean, waiting, work_s, done = (np.array(one) for one in of)
    measured = (done > 0) & (work_s > 0)
    service_s = np.where(measured, work_s / np.where(measured, done, 1.0), flow.slo_s)
    return Load(rate, service_s, waiting, mean)


def expected(load: Load, memory: TideMemory, flow: Flow, steps: int) -> Load:
    """The highest rates of now and of the next ``steps``, where the load repeats."""
    published = ahead(memory.recent, memory.round_steps, steps)
    if not len(published):
        return load
    rates = flow.rates(published).max(axis=0)
    return replace(load, rate_per_s=np.maximum(load.rate_per_s, rates))


def likely(load: Load, memory: TideMemory, flow: Flow, step_s: float) -> Load | None:
    """Rates that are as likely as each other, where the load wavers; else None.

    Shape (rates, operators): those of the last minutes.
    """
    if not memory.wavers or memory.round_steps:
        return None
    recent = np.array(memory.recent[-max(1, round(WAVERING_S / step_s)) :], dtype=np.float64)
    return replace(load, rate_per_s=flow.rates(recent))
