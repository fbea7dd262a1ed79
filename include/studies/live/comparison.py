"""A run on the live testbed beside the same spec in the simulator, calibrated with the former."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from include.experiment.run import Run
from include.measurements.store import RunStore
from include.model.compliance import LEVELS
from include.studies.base import Rows, measured_rows

COMPLIANCE_POINTS, INSTANCES_PERCENT = 5.0, 15.0
"""How far the simulator may be off: points of compliance, percent of all instances."""
ACTIVITIES = ("upscaling", "downscaling", "migration", "host_leased", "host_released")


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What one run is held against another by.

    ``compliance_percent`` by level, ``instances`` and ``hosts`` by minute (means over operators'
    readings), ``activities`` by kind.
    """

    compliance_percent: dict[str, float]
    within_by_operator: dict[str, float]
    instances: list[float]
    hosts: list[float]
    activities: dict[str, int]


def seen(run: Run, store: RunStore) -> RunFigures:
    """Read a complete run."""
    slo_ms = {op.name: op.slo_ms for op in run.topology.operators}
    durations = measured_rows(store, "processing_duration").to_pylist()
    shares = [row["duration_ms"] / slo_ms[row["operator"]] for row in durations]
    activities = [row["activity"] for row in measured_rows(store, "scaling_activity").to_pylist()]
    own: dict[str, list[bool]] = {name: [] for name in slo_ms}
    for row, share in zip(durations, shares, strict=True):
        own[row["operator"]].append(share <= 1)
    return RunFigures(
        {name: 100 * fmean(share <= limit for share in shares) for name, limit in LEVELS},
        {name: 100 * fmean(values) for name, values in own.items() if values},
        _by_minute(measured_rows(store, "queue").to_pylist(), "instances"),
        _leased(measured_rows(store, "lease").to_pylist(), run.spec.duration_s),
        {name: activities.count(name) for name in ACTIVITIES},
    )


def _by_minute(queues: Rows, column: str) -> list[float]:
    """Means over the readings of a minute of the sum over operators."""
    readings: dict[float, float] = {}
    for row in queues:
        readings[row["time_s"]] = readings.get(row["time_s"], 0) + row[column]
    minutes: dict[int, list[float]] = {}
    for time_s, total in sorted(readings.items()):
        minutes.setdefault(int((time_s - 1e-6) // 60), []).append(total)
    return [fmean(values) for _, values in sorted(minutes.items())]


def _leased(leases: Rows, duration_s: float) -> list[float]:
    """Hosts on average, by minute."""
    spans = [(row["ordered_s"], row["ended_s"]) for row in leases]
    begins = range(0, round(duration_s), 60)
    return [
        sum(max(0.0, min(end_s, at + 60) - max(start_s, at)) for start_s, end_s in spans) / 60
        for at in begins
    ]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """One figure, live and simulated; of the latter the mean over seeds and its range."""

    what: str
    live: float
    simulated: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return fmean(self.simulated)

    def __str__(self) -> str:
        low, high = min(self.simulated), max(self.simulated)
        off = f"{self.mean - self.live:+8.1f}"
        return f"{self.what:<42} {self.live:8.1f} {self.mean:10.1f} [{low:.1f}, {high:.1f}] {off}"


def side_by_side(live: RunFigures, simulated: Sequence[RunFigures]) -> Iterator[SideBySide]:
    """Compliance, instances and hosts over time, decisions that were carried out."""
    for level in live.compliance_percent:
        values = tuple(one.compliance_percent[level] for one in simulated)
        yield SideBySide(f"compliance {level}, %", live.compliance_percent[level], values)
    for name, share in live.within_by_operator.items():
        values = tuple(one.within_by_operator.get(name, 0.0) for one in simulated)
        yield SideBySide(f"  real_time of {name}, %", share, values)
    for what in ("instances", "hosts"):
        of_live: list[float] = getattr(live, what)
        of_all: list[list[float]] = [getattr(one, what) for one in simulated]
        yield SideBySide(f"{what}, mean", fmean(of_live), tuple(fmean(one) for one in of_all))
        for minute, value in enumerate(of_live):
            yield SideBySide(f"  minute {minute + 1}", value, tuple(one[minute] for one in of_all))
    for kind, count in live.activities.items():
        yield SideBySide(kind, count, tuple(float(one.activities[kind]) for one in simulated))


def verdicts(lines: Sequence[SideBySide]) -> Iterator[str]:
    """Whether the simulator is as near as it should be."""
    for line in lines:
        if line.what.startswith("compliance"):
            off = abs(line.mean - line.live)
            word = "within" if off <= COMPLIANCE_POINTS else "NOT within"
            yield f"{line.what}: {off:.1f} points off, {word} {COMPLIANCE_POINTS:g}"
        elif line.what == "instances, mean":
            off = 100 * abs(line.mean / line.live - 1)
            word = "within" if off <= INSTANCES_PERCENT else "NOT within"
            yield f"total instances: {off:.1f} % off, {word} {INSTANCES_PERCENT:g} %"
