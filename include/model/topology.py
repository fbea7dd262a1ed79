"""A stream topology: sources, operators and the edges between them (PeerJ CS 141, Fig. 1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from include.model.tenant import Tenant

MOST_KEYS = 10**7
"""A testbed keeps a number for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """How the items of an operator are spread over its keys; the instance with a key serves it.

    An item has key k of 1 to ``keys`` with a probability proportional to k ** -``exponent``
    (Zipf's law; 0 makes all keys alike). ``state_kb`` is the state of each key.
    """

    keys: int
    exponent: float = 0.0
    state_kb: float = 0.0

    def problems(self) -> Iterator[str]:
        """Every value that is out of range."""
        if not 1 <= self.keys <= MOST_KEYS:
            yield f"keyed.keys must be from 1 to {MOST_KEYS}, got {self.keys}"
        for name in ("exponent", "state_kb"):
            if not 0 <= getattr(self, name) < math.inf:
                yield f"keyed.{name} must be a number of at least 0, got {getattr(self, name):g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator type (Table 2). Every instance of it needs this much of a host.

    ``slo_ms`` is o_slo: the processing duration of one item when nothing waits.
    ``cpu_cores`` and ``memory_mb`` are what placement reserves for an instance.
    """

    name: str
    label: str
    slo_ms: float
    cpu_cores: float
    memory_mb: float
    storage_mb: float
    stateful: bool = False
    state_mb: float = 0.0
    """What a stateful instance takes along when it moves to another host."""
    instances_at_start: int = 1
    tenant: str = ""
    service_ms: float | None = None
    """Mean time to process one item alone on a core; only simulated testbeds need it."""
    runs_in: str = ""
    """The operator whose instances do this one's work, before their own; it has none itself."""
    high_volume: bool = False
    """Gets so many more items than the others that totals are given without it as well."""
    keyed: Keyed | None = None
    """None: any instance serves any item. Testbeds without ``serves_by_key`` ignore it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A kind of sensor (Table 1): items emitted per level unit in every emission period."""

    name: str
    label: str
    items_per_level: float
    size_bytes: int
    tenant: str = ""
    arrivals: Mapping[str, Any] = field(default_factory=dict)
    """A pattern of its own, ``name`` and options; its level multiplies that of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Items flow from a source or operator to an operator: ``items_out`` per ``items_in``."""

    origin: str
    target: str
    items_out: int = 1
    items_in: int = 1


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A feed-forward graph. ``level`` counts ``level_unit`` (for example machines)."""

    name: str
    level_unit: str
    emission_period_s: float
    operators: tuple[Operator, ...]
    sources: tuple[Source, ...]
    edges: tuple[Edge, ...]
    tenants: tuple[Tenant, ...] = ()

    @cached_property
    def operator(self) -> Mapping[str, Operator]:
        return {op.name: op for op in self.operators}

    @cached_property
    def source(self) -> Mapping[str, Source]:
        return {source.name: source for source in self.sources}

    @cached_property
    def operator_names(self) -> tuple[str, ...]:
        """Operators with instances of their own, in the order of the file."""
        return tuple(op.name for op in self.operators if not op.runs_in)

    @cached_property
    def flow_order(self) -> tuple[str, ...]:
        """Every operator after all it receives from, and after one that runs in it.

        Raises ValueError on a cycle.
        """
        origins: dict[str, set[str]] = {name: set() for name in self.operator}
        for edge in self.edges:
            if edge.origin in origins and edge.target in origins:
                origins[edge.target].add(edge.origin)
        for op in self.operators:
            if op.runs_in in origins:
                origins[op.runs_in].add(op.name)
        sorter, placed = TopologicalSorter(origins), list[str]()
        place = {name: i for i, name in enumerate(origins)}
        try:
            sorter.prepare()
        except CycleError as error:
            around = ", ".join(sorted(set(error.args[1])))
            raise ValueError(f"the operators {around} form a cycle") from error
        while ready := sorter.get_ready():
            placed += sorted(ready, key=place.__getitem__)
            sorter.done(*ready)
        return tuple(placed)

    @cached_property
    def _inbound(self) -> Mapping[str, list[Edge]]:
        inbound: dict[str, list[Edge]] = {}
        for edge in self.edges:
            inbound.setdefault(edge.target, []).append(edge)
        return inbound

    def path_slo_ms(self) -> dict[str, float]:
        """o_slo added up along the slowest path from a source to each operator, itself included.

        An item that nothing delays is at most so old at its completion.
        """
        edges = ((e.origin, e.target) for e in self.edges if e.origin in self.operator)
        return slowest_paths({op.name: op.slo_ms for op in self.operators}, edges)

    def items_per_level(self) -> dict[str, float]:
        """Executions of each operator per level unit and emission period, in flow order."""
        return self.items_per_period(dict.fromkeys(self.source, 1.0))

    def items_per_period(self, levels: Mapping[str, float]) -> dict[str, float]:
        """Executions of each operator per emission period, in flow order.

        ``levels`` are those of the sources, by name.
        """
        items = {
            source.name: source.items_per_level * levels[source.name] for source in self.sources
        }
        order, inbound = self.flow_order, self._inbound
        for name in order:
            items[name] = sum(items[e.origin] * e.items_out / e.items_in for e in inbound[name])
        return {name: items[name] for name in order}

    def executions_per_item(self, source: str) -> dict[str, float]:
        """Executions of each operator that an item of the source leads to, in flow order."""
        level = 1 / self.source[source].items_per_level
        return self.items_per_period(dict.fromkeys(self.source, 0.0) | {source: level})

    def busy_instances(
        self, levels: Mapping[str, float], service_ms: Mapping[str, float]
    ) -> dict[str, float]:
        """Instances of each operator that such levels of the sources keep busy all the time."""
        per_period = self.items_per_period(levels).items()
        return {
            name: items / self.emission_period_s * service_ms[name] / 1000
            for name, items in per_period
        }

    def operators_of(self, tenant: str) -> tuple[Operator, ...]:
        """The operators of a tenant, in the order of the file."""
        return tuple(op for op in self.operators if op.tenant == tenant)

    def sinks(self, tenant: str) -> tuple[str, ...]:
        """Operators of a tenant that nothing receives from."""
        origins = {edge.origin for edge in self.edges}
        return tuple(op.name for op in self.operators_of(tenant) if op.name not in origins)

    def with_memory_factor(self, factor: float) -> Topology:
        """The same topology whose instances reserve ``factor`` times the memory."""
        operators = tuple(replace(op, memory_mb=op.memory_mb * factor) for op in self.operators)
        return replace(self, operators=operators)

    def problems(self) -> Iterator[str]:
        """Everything wrong with the graph, each with what to do."""
        yield from _name_problems(self)
        yield from _loose_ends(self)
        yield from _guest_problems(self)
        for op in self.operators:
            if op.instances_at_start < 1:
                least = "instances must be at least 1"
                yield f"operator {op.name}: {least}, got {op.instances_at_start}"
            if op.keyed:
                yield from (f"operator {op.name}: {problem}" for problem in op.keyed.problems())
                if not op.stateful:
                    yield f"operator {op.name}: keyed needs stateful: true"
        yield from _tenant_problems(self)
        try:
            _ = self.flow_order
        except ValueError as error:
            yield f"{error}; a topology must be feed-forward, so remove the edge that leads back"


def slowest_paths(takes: Mapping[str, float], edges: Iterable[tuple[str, str]]) -> dict[str, float]:
    """The most that any path to each operator adds up to, the operator itself included.

    ``edges`` are between operators. Raises CycleError, a ValueError, on a cycle.
    """
    origins: dict[str, list[str]] = {name: [] for name in takes}
    for origin, target in edges:
        origins[target].append(origin)
    paths: dict[str, float] = {}
    for name in TopologicalSorter(origins).static_order():
        paths[name] = takes[name] + max((paths[origin] for origin in origins[name]), default=0.0)
    return paths


def _name_problems(topology: Topology) -> Iterator[str]:
    names = Counter([*topology.operator, *(source.name for source in topology.sources)])
    for name in sorted(name for name, times in names.items() if times > 1):
        yield f"the name {name} is used twice; names of operators and sources must differ"
    for name in topology.operator:
        if name == "overall" or name.startswith("without_"):
            yield f"operator {name}: tables call totals overall or without_...; use another name"
    if not topology.operators:
        yield "no operators; give at least one"
    if not topology.sources:
        yield "no sources; give at least one, or nothing would ever arrive"
    for edge in topology.edges:
        where = f"edge {edge.origin} -> {edge.target}"
        if edge.origin not in names:
            yield f"{where}: {edge.origin} is neither a source nor an operator"
        if edge.target not in topology.operator:
            yield f"{where}: {edge.target} is not an operator"
        if edge.items_out < 1 or edge.items_in < 1:
            yield f"{where}: items_out and items_in must be whole numbers of at least 1"


def _tenant_problems(topology: Topology) -> Iterator[str]:
    names = {tenant.name for tenant in topology.tenants}
    parts: list[Operator | Source] = [*topology.operators, *topology.sources]
    for part in parts:
        if part.tenant and part.tenant not in names:
            yield f"{part.name} belongs to the tenant {part.tenant}, which is not among the tenants"
    for tenant in topology.tenants:
        if tenant.joins_s < 0:
            yield f"tenant {tenant.name}: joins_s must not be negative, got {tenant.joins_s:g}"
        if tenant.intent:
            yield from (f"tenant {tenant.name}: {problem}" for problem in tenant.intent.problems())


def _guest_problems(topology: Topology) -> Iterator[str]:
    origins = {edge.origin for edge in topology.edges}
    hosts = [op.runs_in for op in topology.operators if op.runs_in]
    for op in topology.operators:
        if not op.runs_in:
            continue
        if op.runs_in not in topology.operator_names:
            yield f"operator {op.name}: {op.runs_in} has no instances that it could run in"
        if op.name in origins:
            yield f"operator {op.name} runs in another, so nothing may receive from it"
        if hosts.count(op.runs_in) > 1:
            yield f"operator {op.runs_in} can do the work of one other operator only"


def _loose_ends(topology: Topology) -> Iterator[str]:
    targets = {edge.target for edge in topology.edges}
    for op in topology.operators:
        if op.name not in targets:
            yield f"operator {op.name} receives nothing; add an edge to it or remove it"
    for source in topology.sources:
        if not any(edge.origin == source.name for edge in topology.edges):
            yield f"source {source.name} feeds nothing; add an edge from it or remove it"
