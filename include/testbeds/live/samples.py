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
    scale: float,
) -> dict[str, dict[str, Any]]:
    """Counters of an observer at this observation, for differences at its next one.

    A second observation of the same reading keeps the busy shares. ``scale``: seconds of the run
    per second of wall time.
    """
    wall = {"us": reading.wall_us}
    busy = None
    if wall != before.get("wall"):
        passed_s = (reading.wall_us - before.get("wall", wall)["us"]) / 1e6 * scale
        busy = busy_shares(reading.busy_of, before.get("busy_of", {}), passed_s, instances)
    return {
        "arrived": reading.arrived,
        "completed": reading.completed,
        "recorded": reading.recorded,
        "late": reading.late,
        "busy_of": reading.busy_of,
        "wall": wall,
        "busy": dict(before.get("busy", {})) if busy is None else busy,
    }


def busy_shares(
    now_s: Mapping[str, float],
    before_s: Mapping[str, float],
    passed_s: float,
    instances: Iterable[LiveInstance],
) -> dict[str, tuple[float, float]]:
    """Mean and highest share of time that the instances of each operator worked."""
    shares: dict[str, list[float]] = {}
    for instance in instances:
        share = busy_share(instance.name, now_s, before_s, passed_s)
        if instance.serves and share is not None:
            shares.setdefault(instance.operator, []).append(share)
    return {name: (round(fmean(each), 4), round(max(each), 4)) for name, each in shares.items()}


def busy_share(
    name: str, now_s: Mapping[str, float], before_s: Mapping[str, float], passed_s: float
) -> float | None:
    """Share of the time that passed for which an instance worked; absent before two readings.

    It is told when an item is done, so a long one may count for a reading too late.
    """
    if passed_s <= 0 or name not in now_s or name not in before_s:
        return None
    return round(min(1.0, max(0.0, (now_s[name] - before_s[name]) / passed_s)), 4)


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
            busy_in_all_s=reading.busy_s.get(name),
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
