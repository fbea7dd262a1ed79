"""What a controller may know: one immutable picture per monitoring period.

Operators and hosts that the monitor could not read are absent. Absent never means zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSample:
    """One operator, as the monitor saw it. Item counts are since the last observation."""

    operator: str
    waiting_items: int
    durations_ms: tuple[float, ...]
    """The last recorded processing durations, oldest first; empty when none was recorded."""
    arrived_items: int
    completed_items: int

    @property
    def duration_ms(self) -> float | None:
        """o_d: the mean of the last durations, or None when there is none."""
        return fmean(self.durations_ms) if self.durations_ms else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """A leased host. ``cpu_share`` and ``memory_share`` are absent (None) while it boots."""

    host: str
    flavor: str
    ordered_s: float
    paid_until_s: float
    up: bool
    releasing: bool
    images: frozenset[str]
    cpu_share: float | None = None
    memory_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSample:
    """A running copy of an operator. A stopping one takes no new items but holds its place."""

    instance: str
    operator: str
    host: str
    started_s: float
    ready: bool
    stopping: bool
    cpu_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything known at ``now_s`` (seconds since the run began)."""

    now_s: float
    operators: Mapping[str, OperatorSample]
    hosts: Mapping[str, HostSample]
    instances: Mapping[str, InstanceSample]

    def serving(self, operator: str) -> tuple[InstanceSample, ...]:
        """Instances of the operator that run or start, in order of their start."""
        return tuple(
            one for one in self.instances.values() if one.operator == operator and not one.stopping
        )

    def on_host(self, host: str) -> tuple[InstanceSample, ...]:
        """Instances on the host that run or start."""
        return tuple(
            one for one in self.instances.values() if one.host == host and not one.stopping
        )
