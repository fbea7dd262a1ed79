"""What the monitor read last, as plain values that one process hands to the next."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

LAST_DURATIONS = 5
"""N of Algorithm 1: how many recorded durations a controller sees."""


@dataclass(slots=True)
class LiveReading:
    """One monitoring time. What could not be read is absent.

    Counts are since the run began, CPU in seconds so far: the next reading takes the difference.
    """

    time_s: float = 0.0
    wall_us: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    arrived: dict[str, int] = field(default_factory=dict)
    completed: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    durations_ms: dict[str, list[float]] = field(default_factory=dict)
    recorded: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    """Of the recorded items, those that are not near real-time."""
    cpu_s: dict[str, float] = field(default_factory=dict)
    """Of hosts and instances, by name."""
    cpu_share: dict[str, float] = field(default_factory=dict)
    memory_share: dict[str, float] = field(default_factory=dict)
    missed: bool = False
    """Broker or Redis did not answer."""

    def to_plain(self) -> dict[str, Any]:
        """Plain values for files and snapshots."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> LiveReading:
        """The inverse of :meth:`to_plain`."""
        return cls(**plain)
