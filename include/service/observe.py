"""A job that runs on Flink as any controller of the project sees it.

Instances are subtasks, hosts TaskManagers. A source that cannot be scaled is a source; one that can
be is an operator. What Flink does not know is absent, but for the CPU of an instance: there the
time that its operator is busy stands in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from include.advise.edges import in_whole_records
from include.controllers.base import Setting
from include.model.host import HostFlavor, PriceBook
from include.model.observation import Observation, OperatorSample
from include.model.topology import Edge, Operator, Source, Topology, slowest_paths
from include.service.fleet import PaperFleet
from include.service.rates import JobRates, OperatorTotals, Totals, path_s, waiting_for, whole_sum
from include.service.reading import JobReading, OperatorReading

LEAST_MS = 0.001
LEAST_BUSY = 1e-6
"""What works for less than Flink counts has worked: without, nobody could tell what a record takes.
"""
SLOT = 1 - 1e-9
"""What all that share a slot take of it together: with all of it, rounding left one out."""
LOAD = "load_of_"


@dataclass(frozen=True, slots=True)
class Terms:
    """What hosts and late records cost, and when a record is late."""

    prices: PriceBook
    limit_s: float
    """From the source to the end of the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceGraph:
    """What is known of the operators once some records have passed; plain values.

    ``factors`` are records that go over an edge per record that its origin takes in, ``work_ms``
    the time that an instance is busy with a record.
    """

    edges: tuple[tuple[str, str], ...]
    factors: tuple[float, ...]
    work_ms: Mapping[str, float]


def graph_of(now: JobReading) -> ServiceGraph:
    """Measured on everything since the job started last; 1 where nothing passed yet."""
    of = {op.operator: op for op in now.operators}
    fed = Counter(target for _, target in now.edges)
    factors = []
    for origin, target in now.edges:
        goes = of[target].records_in if fed[target] == 1 else of[origin].records_out
        factors.append(_ratio(goes, _taken(of[origin])))
    work_ms = {
        op.operator: max(LEAST_MS, 1000 * _ratio(op.busy_s, _taken(op), LEAST_MS / 1000))
        for op in now.operators
    }
    return ServiceGraph(edges=now.edges, factors=tuple(factors), work_ms=work_ms)


def _taken(op: OperatorReading) -> float | None:
    return op.records_out if op.records_in is None else op.records_in


def _ratio(goes: float | None, comes: float | None, otherwise: float = 1.0) -> float:
    return goes / comes if goes and comes else otherwise


def setting_of(
    now: JobReading, graph: ServiceGraph, terms: Terms, *, every_s: float, max_hosts: int
) -> Setting:
    """What controllers are told of the job. A host has the slots of a TaskManager; operators that
    share slots share their cores and memory evenly; operators of a path its time."""
    scaled = now.scaled
    slots = Counter(manager.slots for manager in now.task_managers).most_common(1)
    each = slots[0][0] if slots else 1
    sharing = Counter(op.slot_group for op in now.operators if op.operator in scaled)
    on_path = {op.operator: float(op.operator in scaled) for op in now.operators}
    share_ms = 1000 * terms.limit_s / max(1.0, *slowest_paths(on_path, now.edges).values())
    flavor = HostFlavor(name="task-manager", vcpus=float(each), memory_mb=1000.0 * each)
    operators = tuple(
        Operator(
            name=op.operator,
            label=op.operator,
            slo_ms=max(share_ms, graph.work_ms[op.operator]),
            cpu_cores=SLOT / sharing[op.slot_group],
            memory_mb=1000.0 * SLOT / sharing[op.slot_group],
            storage_mb=0.0,
            service_ms=graph.work_ms[op.operator],
            instances_at_start=op.parallelism,
        )
        for op in now.operators
        if op.operator in scaled
    )
    edges, sources = [], []
    for (origin, target), factor in zip(graph.edges, graph.factors, strict=True):
        out = in_whole_records(factor)
        edge = Edge(origin=origin, target=target, items_out=out.numerator, items_in=out.denominator)
        edges.append(edge)
    for name in now.sources:
        if name in scaled:
            edges.append(Edge(origin=LOAD + name, target=name))
            name = LOAD + name
        sources.append(Source(name=name, label=name, items_per_level=1.0, size_bytes=0))
    topology = Topology(
        name="job",
        level_unit="records a second",
        emission_period_s=1.0,
        operators=operators,
        sources=tuple(sources),
        edges=tuple(edges),
    )
    return Setting(
        topology=topology,
        flavor=flavor,
        btu_s=terms.prices.btu_s,
        seed=0,
        price_per_btu=terms.prices.price_per_btu,
        penalty_per_item=terms.prices.penalty_per_item,
        monitor_every_s=every_s,
        max_hosts=max_hosts,
    )


def observation_of(  # noqa: PLR0913  everything that is seen
    now: JobReading,
    rates: JobRates,
    totals: Totals,
    mark: Totals,
    fleet: PaperFleet,
    setting: Setting,
    *,
    began_s: float,
    since_s: float,
) -> Observation:
    """What one controller sees; ``mark`` are the totals when it looked last, ``since_s`` ago.

    Operators without a reading of busy time or records are absent. If the job was started since
    then, the CPU of instances is, too, and shares are of all that time: it did nothing while down.
    """
    waiting, takes = waiting_for(now), path_s(now, rates.operators)
    started = totals.job_starts > mark.job_starts
    samples: dict[str, OperatorSample] = {}
    for op in now.operators:
        of = rates.operators[op.operator]
        if op.operator not in setting.topology.operator:
            continue
        if None in (of.busy_share, of.taken_per_s):
            continue
        samples[op.operator] = _sample(
            op,
            totals.operators.get(op.operator, OperatorTotals()),
            mark.operators.get(op.operator, OperatorTotals()),
            waiting[op.operator],
            _takes_s(op.operator, now, takes),
            since_s * op.parallelism if started else 0.0,
        )
    busy = {
        name: sample.busy_share for name, sample in samples.items() if sample.busy_share is not None
    }
    published = {
        name if name in setting.topology.source else LOAD + name: round(count)
        for name, count in totals.published.items()
    }
    known = {name: n for name, n in published.items() if name in setting.topology.source}
    return Observation(
        now_s=now_s(now, began_s, setting.monitor_every_s),
        operators=samples,
        hosts=fleet.hosts_seen(setting, busy),
        instances=fleet.instances_seen({} if started else busy),
        published_in_all=known if len(known) == len(setting.topology.sources) else {},
        job_started_s=max(0.0, now.at_s - began_s - now.ran_s),
        job_starts=totals.job_starts,
        job_changes=totals.job_changes,
        job_paused_in_all_s=totals.paused_for_changes_s,
    )


def _takes_s(operator: str, now: JobReading, takes: Mapping[str, float | None]) -> float | None:
    """With the time that records wait for a source before it that is no operator."""
    outside = [of for of, to in now.edges if to == operator and of not in now.scaled]
    return whole_sum(takes[name] for name in (operator, *outside))


def now_s(now: JobReading, began_s: float, every_s: float) -> float:
    """Seconds of the service: whole turns, which polls are late for by milliseconds."""
    return round((now.at_s - began_s) / every_s) * every_s


def _sample(
    now: OperatorReading,
    totals: OperatorTotals,
    mark: OperatorTotals,
    waiting: float,
    takes_s: float | None,
    least_spent_s: float,
) -> OperatorSample:
    spent_s = max(least_spent_s, totals.spent_s - mark.spent_s)
    busy = None
    if spent_s > 0:
        busy = min(1.0, max(LEAST_BUSY, (totals.busy_s - mark.busy_s) / spent_s))
    busiest = busy if now.busiest_share is None or busy is None else max(busy, now.busiest_share)
    arrived, completed = round(totals.arrived), round(totals.completed)
    return OperatorSample(
        operator=now.operator,
        waiting_items=round(waiting),
        durations_ms=() if takes_s is None else (1000 * takes_s,),
        arrived_items=arrived - round(mark.arrived),
        completed_items=completed - round(mark.completed),
        capacity=busiest,
        busy_share=busy,
        busiest_share=busiest,
        arrived_in_all=arrived,
        completed_in_all=completed,
        busy_in_all_s=totals.busy_s + LEAST_BUSY * totals.spent_s,
    )
