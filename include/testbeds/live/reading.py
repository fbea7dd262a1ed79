"""The monitor's last reading, which one process passes to the next, and samples built of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Self

from include.model.compliance import LEVELS
from include.model.observation import OperatorSample
from include.model.topology import Operator, Topology
from include.testbeds.base import LAST_DURATIONS
from include.testbeds.live.fleet import LiveInstance
from include.testbeds.live.operators.wire import now_us

NOT_READ = (None, None)
CLOCKS_DIFFER_MS = 50.0


@dataclass(slots=True)
class LiveReading:
    """A reading; unread values are absent. Counts and seconds are since the run began, those of
    work in time of the run."""

    time_s: float = 0.0
    wall_us: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    arrived: dict[str, int] = field(default_factory=dict)
    completed: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    durations_ms: dict[str, list[float]] = field(default_factory=dict)
    recorded: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    """Recorded items that are not near real-time."""
    busy_s: dict[str, float] = field(default_factory=dict)
    """By operator."""
    busy_of: dict[str, float] = field(default_factory=dict)
    """By instance that was read now."""
    cpu_s: dict[str, float] = field(default_factory=dict)
    """By host."""
    cpu_share: dict[str, float] = field(default_factory=dict)
    memory_share: dict[str, float] = field(default_factory=dict)
    missed: bool = False
    """Whether broker or Redis did not answer."""
    blocked_since_us: int = 0
    """Time of the first reading since which the broker blocks publishers; 0 if it does not."""

    def next(self, time_s: float) -> Self:
        """One that is taken now, at a second of the run, with what this one has to begin with."""
        now = {"time_s": time_s, "wall_us": now_us(), "missed": False}
        return type(self)(**{**asdict(self), **now})

    def record(self, operator: Operator, durations_ms: Sequence[float]) -> None:
        """Count items that are done, the last one last."""
        name, limit_ms = operator.name, dict(LEVELS)["near_real_time"] * operator.slo_ms
        late = sum(each > limit_ms for each in durations_ms)
        self.recorded[name] = self.recorded.get(name, 0) + len(durations_ms)
        self.late[name] = self.late.get(name, 0) + late
        last = self.durations_ms.get(name, [])
        self.durations_ms[name] = [*last, *durations_ms][-LAST_DURATIONS:]

    def counted(self, busy: str) -> dict[str, dict[str, Any]]:
        """Counters from which an observer takes differences at its next look, with one of busy."""
        names = ("arrived", "completed", "recorded", "late", busy)
        return {"wall": {"us": self.wall_us}, **{name: getattr(self, name) for name in names}}


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
    now, busy = reading.counted("busy_of"), dict(before.get("busy", {}))
    if now["wall"] != before.get("wall"):
        passed_s = (reading.wall_us - before.get("wall", now["wall"])["us"]) / 1e6 * scale
        busy = busy_shares(reading.busy_of, before.get("busy_of", {}), passed_s, instances)
    return {**now, "busy": busy}


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


def not_before(ms: float) -> float:
    """A time between two clocks, in ms: what is a little below 0 is 0. What is more is a clock that
    is set wrong, which the gate `input_checks` tells."""
    return ms if ms < -CLOCKS_DIFFER_MS else max(0.0, ms)


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
