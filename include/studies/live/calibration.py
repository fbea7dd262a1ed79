"""Values for the simulator, from what was measured on the live testbed.

Service times come from an over-provisioned run, in which hardly anything waits; boots, pulls and
starts from any run in which a controller leased hosts and started instances.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median, pstdev
from typing import NamedTuple

from include.results.tables.staged import Rows, gathered

STARTED = re.compile(
    r"ready (?P<ready>[\d.]+) s after the decision(, of which pulling its image took "
    r"(?P<pull>[\d.]+) s)?"
)
"""How the live testbed tells of an instance that has started (event ``instance_started``)."""


def bounds_of(seconds: Sequence[float]) -> tuple[float, float]:
    """Of the even distribution with the same mean and, where 0 allows it, deviation."""
    mean, reach = fmean(seconds), math.sqrt(3) * pstdev(seconds)
    reach = min(reach, mean)
    return round(mean - reach, 2), round(mean + reach, 2)


class ServiceTime(NamedTuple):
    """What one operator needs for an item."""

    samples: int
    mean_ms: float
    cv: float


def services(durations: Rows) -> dict[str, ServiceTime]:
    """By operator, from rows of ``processing_duration``: duration without the wait."""
    times = gathered((row["operator"], row["duration_ms"] - row["wait_ms"]) for row in durations)
    return {
        name: ServiceTime(len(values), fmean(values), pstdev(values) / fmean(values))
        for name, values in sorted(times.items())
    }


def overall_cv(by_operator: Mapping[str, ServiceTime]) -> float:
    """One coefficient of variation for all, weighted by the time that each is busy."""
    busy = {name: one.mean_ms * one.samples for name, one in by_operator.items()}
    return sum(one.cv * busy[name] for name, one in by_operator.items()) / sum(busy.values())


def boots(events: Rows, activities: Rows) -> list[float]:
    """Seconds from the order of each host that came up to its first answer."""
    ordered = {row["host"]: row["time_s"] for row in activities if row["activity"] == "host_leased"}
    up = {row["subject"]: row["time_s"] for row in events if row["event"] == "host_up"}
    return [up[host] - ordered[host] for host in up.keys() & ordered.keys()]


def starts(events: Rows, activities: Rows) -> Iterator[tuple[float, float]]:
    """Seconds that every instance which a decision started took on a host that was up: to pull its
    image, 0 where it was cached, and to start."""
    up = {row["subject"]: row["time_s"] for row in events if row["event"] == "host_up"}
    decided = {row["instance"]: row for row in activities if row["instance"]}
    for row in events:
        match = STARTED.search(row["detail"])
        order = decided.get(row["subject"])
        if row["event"] == "instance_started" and match and order:
            pull_s = float(match["pull"] or 0)
            boot_s = max(0.0, up.get(order["host"], 0.0) - order["time_s"])
            yield pull_s, max(0.0, float(match["ready"]) - boot_s - pull_s)


def as_yaml(recorded: Rows, events: Rows, activities: Rows, sample_every_items: int) -> str:
    """A calibration file of the simulator; what was not measured is left to its defaults."""
    by_operator = services(recorded)
    started = list(starts(events, activities))
    kinds = {
        "host_boot_s": boots(events, activities),
        "instance_start_s": [start_s for _, start_s in started],
        "image_pull_s": [pull_s for pull_s, _ in started],
    }
    width = max(len(name) for name in by_operator)
    lines = [
        "# The simulator's parameters for the manufacturing topology on the live testbed.",
        "# Written by `make live-calibrate`: service times from an over-provisioned run",
        "# (specs/live_recording.yaml), the others from a run that was scaled (specs/live.yaml).",
        "service_ms:                  # items recorded, coefficient of variation",
        *(
            f"  {name:<{width}}: {one.mean_ms:<8.4g}         # {one.samples}, {one.cv:.2f}"
            for name, one in by_operator.items()
        ),
        f"service_cv: {overall_cv(by_operator):.2f}",
        f"latency_ms: {median(row['wait_ms'] for row in recorded):.2f}",
        *(
            f"{name}: [{low:g}, {high:g}]  # {len(seconds)} measured: {min(seconds):.2f} to "
            f"{max(seconds):.2f} s, median {median(seconds):.2f} s"
            for name, seconds in kinds.items()
            if seconds
            for low, high in [bounds_of(seconds)]
        ),
        "drain_s: 1                   # it finishes the item in hand and ends",
        "timestamp_resolution_s: 0",
        f"sample_every_items: {sample_every_items}",
        "cpu_noise: 0.02",
    ]
    return "\n".join(lines) + "\n"
