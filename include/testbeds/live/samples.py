"""Builds the samples of observations from readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from include.model.observation import OperatorSample
from include.model.topology import Topology
from include.testbeds.live.fleet import LiveInstance
from include.testbeds.live.reading import LiveReading

NOT_READ = (None, None)


def observed_of(
    reading: LiveReading,
    before: Mapping[str, Mapping[str, Any]],
    instances: Iterable[LiveInstance],
) -> dict[str, dict[str, Any]]:
    """Counters of an observer at this observation, for differences at its next one.

    A second observation of the same reading keeps the busy shares.
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
    """Mean and highest CPU share of a core by operator, over its instances since ``before``.

    Stands for busy time, which containers do not meter. Instances count after two readings.
    """
    used_s, since_us = before.get("cpu_s", {}), before.get("wall", {}).get("us", reading.wall_us)
    passed_s = (reading.wall_us - since_us) / 1e6
    shares: dict[str, list[float]] = {}
    for instance in instances:
        if (
            passed_s > 0
            and instance.serves
            and instance.name in used_s
            and instance.name in reading.cpu_s
        ):
            share = (reading.cpu_s[instance.name] - used_s[instance.name]) / passed_s
            shares.setdefault(instance.operator, []).append(min(1.0, max(0.0, share)))
    return {name: (round(fmean(each), 4), round(max(each), 4)) for name, each in shares.items()}


def operator_samples(
    topology: Topology, reading: LiveReading, observed: Mapping[str, Mapping[str, Any]]
) -> dict[str, OperatorSample]:
    """Samples by operator, with counts since ``observed`` and the busy shares in it."""
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
            late_share=late_share(name, reading, observed),
        )
        for name in topology.operator_names
    }


def late_share(
    name: str, reading: LiveReading, observed: Mapping[str, Mapping[str, Any]]
) -> float | None:
    """Of an operator's items recorded since ``observed``, those that are not near real-time."""
    recorded = reading.recorded.get(name, 0) - observed.get("recorded", {}).get(name, 0)
    late = reading.late.get(name, 0) - observed.get("late", {}).get(name, 0)
    return late / recorded if recorded else None
