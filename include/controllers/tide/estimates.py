"""What tide knows of a load: rates of sources, propagated, and service times, learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from include.controllers.base import Setting
from include.model.observation import Observation

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TideMemory:
    """The last good reading and what was learned; numbers by source or operator.

    ``work_s`` and ``done`` are CPU seconds and completed items, both fading; ``mean_per_s`` is the
    fading mean of the rate. ``short`` counts decisions in a row that lacked a host, and
    ``leaving`` are hosts that go when their BTU ends.
    """

    seen_s: float = -1.0
    source_per_s: Mapping[str, float] = field(default_factory=dict)
    rate_per_s: Mapping[str, float] = field(default_factory=dict)
    mean_per_s: Mapping[str, float] = field(default_factory=dict)
    waiting: Mapping[str, float] = field(default_factory=dict)
    work_s: Mapping[str, float] = field(default_factory=dict)
    done: Mapping[str, float] = field(default_factory=dict)
    short: int = 0
    leaving: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Load:
    """Per operator, in the order of the topology: executions per second that arrive now and on
    average, seconds per execution, and items that wait."""

    rate_per_s: Array
    mean_per_s: Array
    service_s: Array
    waiting: Array


class Flow:
    """How items of sources reach operators; made once for a topology."""

    def __init__(self, setting: Setting) -> None:
        """Follow the edges."""
        topology = setting.topology
        self.names = topology.operator_names
        per_item = []
        for source in topology.sources:
            alone = dict.fromkeys(topology.source, 0.0) | {source.name: 1 / source.items_per_level}
            items = topology.items_per_period(alone)
            hosted = {name: items[name] for name in self.names}
            per_item.append([hosted[name] for name in self.names])
        self.per_item = np.array(per_item).T.reshape(len(self.names), len(topology.sources))
        """Executions of an operator per item of a source. Shape (operators, sources)."""
        self.sources = tuple(topology.source)
        inbound: dict[str, list[str]] = {}
        for edge in topology.edges:
            inbound.setdefault(edge.target, []).append(edge.origin)
        self.fed_by = {
            source: name
            for name in reversed(self.names)
            if len(inbound.get(name, ())) == 1 and (source := inbound[name][0]) in topology.source
        }
        """An operator that a source alone feeds, so that its arrivals are the source's."""
        self.slo_s = np.array([topology.operator[name].slo_ms / 1000 for name in self.names])
        feeds = self.per_item > 0
        known = np.array([source in self.fed_by for source in self.sources], dtype=bool)
        self.is_known = ~(feeds & ~known).any(axis=1)
        """Operators all of whose items come from sources whose rate can be read."""

    @cached_property
    def place(self) -> Mapping[str, int]:
        """The row of every operator."""
        return {name: row for row, name in enumerate(self.names)}


def learned(
    memory: TideMemory, seen: Observation, flow: Flow, half_life_s: float, horizon_s: float
) -> TideMemory:
    """The memory after an observation; what was not read stays as it was."""
    since_s = seen.now_s - memory.seen_s if memory.seen_s >= 0 else 0.0
    if since_s <= 0 or not seen.operators:
        first = memory.seen_s < 0
        return TideMemory(seen_s=seen.now_s) if first else memory
    keep, blend = 0.5 ** (since_s / half_life_s), 1 - np.exp(-since_s / horizon_s)
    arrived = {name: one.arrived_items / since_s for name, one in seen.operators.items()}
    source_per_s = dict(memory.source_per_s)
    for row, source in enumerate(flow.sources):
        name = flow.fed_by.get(source)
        if name in arrived:
            source_per_s[source] = arrived[name] / flow.per_item[flow.place[name], row]
    busy_s: dict[str, float] = {}
    for one in seen.instances.values():
        if one.cpu_share is not None:
            busy_s[one.operator] = busy_s.get(one.operator, 0.0) + one.cpu_share * since_s
    published = np.array([source_per_s.get(source, 0.0) for source in flow.sources])
    propagated = flow.per_item @ published
    rate, mean = dict(memory.rate_per_s), dict(memory.mean_per_s)
    waiting, work_s, done = dict(memory.waiting), dict(memory.work_s), dict(memory.done)
    for row, name in enumerate(flow.names):
        sample = seen.operators.get(name)
        if flow.is_known[row]:
            rate[name] = float(propagated[row])
        elif sample is not None:
            rate[name] = arrived[name]
        now = rate.get(name, 0.0)
        mean[name] = mean.get(name, now) + blend * (now - mean.get(name, now))
        if sample is None:
            continue
        waiting[name] = float(sample.waiting_items)
        work_s[name] = work_s.get(name, 0.0) * keep + busy_s.get(name, 0.0)
        done[name] = done.get(name, 0.0) * keep + sample.completed_items
    return TideMemory(
        seen.now_s, source_per_s, rate, mean, waiting, work_s, done, memory.short, memory.leaving
    )


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
    return Load(rate, mean, service_s, waiting)
