"""What a controller gets to see of the live world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from include.model.observation import HostSample, InstanceSample, OperatorSample
from include.model.topology import Topology
from include.testbeds.live.fleet import LiveHost, LiveInstance
from include.testbeds.live.reading import LiveReading
from include.testbeds.live.services import image_of
from include.testbeds.live.state import RunState

NOT_READ = (None, None)


def observed_of(
    reading: LiveReading,
    before: Mapping[str, Mapping[str, Any]],
    instances: Iterable[LiveInstance],
) -> dict[str, dict[str, Any]]:
    """What a look keeps for the next one to take differences from.

    A second look at one reading leaves the busy shares as they are.
    """
    wall = {"us": reading.wall_us}
    busy = busy_shares(reading, before, instances) if wall != before.get("wall") else None
    return {
        "arrived": reading.arrived,
        "completed": reading.completed,
        "recorded": reading.recorded,
        "late": reading.late,
        "cpu_s": reading.cpu_s,
        "wall": wall,
        "busy": dict(before.get("busy", {})) if busy is None else busy,
    }


def busy_shares(
    reading: LiveReading,
    before: Mapping[str, Mapping[str, Any]],
    instances: Iterable[LiveInstance],
) -> dict[str, tuple[float, float]]:
    """Mean and maximum by operator of the CPU that its instances used of a core since the look
    ``before``: the work of a container is not metered in any other way. An instance counts once
    it has been read twice."""
    used_s, since_us = before.get("cpu_s", {}), before.get("wall", {}).get("us", reading.wall_us)
    passed_s = (reading.wall_us - since_us) / 1e6
    shares: dict[str, list[float]] = {}
    for one in instances:
        if passed_s > 0 and one.serves and one.name in used_s and one.name in reading.cpu_s:
            share = (reading.cpu_s[one.name] - used_s[one.name]) / passed_s
            shares.setdefault(one.operator, []).append(min(1.0, max(0.0, share)))
    return {name: (round(fmean(of), 4), round(max(of), 4)) for name, of in shares.items()}


def operator_samples(
    topology: Topology, reading: LiveReading, observed: Mapping[str, Mapping[str, Any]]
) -> dict[str, OperatorSample]:
    """A reading by operator; counts are those since ``observed`` ones, and busy shares those that
    :func:`busy_shares` has put there."""
    busy = observed.get("busy", {})
    return {
        name: OperatorSample(
            operator=name,
            waiting_items=reading.waiting[name],
            durations_ms=tuple(reading.durations_ms.get(name, ())),
            arrived_items=reading.arrived[name] - observed["arrived"].get(name, 0),
            completed_items=reading.completed[name] - observed["completed"].get(name, 0),
            busy_share=busy.get(name, NOT_READ)[0],
            busiest_share=busy.get(name, NOT_READ)[1],
            arrived_in_all=reading.arrived[name],
            completed_in_all=reading.completed[name],
            late_share=_late_share(name, reading, observed),
        )
        for name in topology.operator_names
    }


def _late_share(
    name: str, reading: LiveReading, observed: Mapping[str, Mapping[str, Any]]
) -> float | None:
    recorded = reading.recorded.get(name, 0) - observed.get("recorded", {}).get(name, 0)
    late = reading.late.get(name, 0) - observed.get("late", {}).get(name, 0)
    return late / recorded if recorded else None


def host_sample(state: RunState, host: LiveHost) -> HostSample:
    """A leased host as it is now. Operators whose image it has cached count as its images."""
    cached = {
        name
        for name in state.config.topology.operator_names
        if image_of(state.images, name) in host.images
    }
    return HostSample(
        host=host.name,
        flavor=host.flavor,
        ordered_s=host.ordered_s,
        paid_until_s=host.paid_until_s,
        up=host.up,
        releasing=host.releasing,
        images=frozenset(cached),
        cpu_share=state.reading.cpu_share.get(host.name),
        memory_share=state.reading.memory_share.get(host.name),
    )


def instance_sample(state: RunState, one: LiveInstance) -> InstanceSample:
    """An instance as it is now; its shares are absent until they were read."""
    return InstanceSample(
        instance=one.name,
        operator=one.operator,
        host=f"host-{one.host}",
        started_s=one.started_s,
        ready=one.ready_s is not None,
        stopping=one.stopping,
        cpu_share=state.reading.cpu_share.get(one.name),
        memory_share=state.reading.memory_share.get(one.name),
    )
