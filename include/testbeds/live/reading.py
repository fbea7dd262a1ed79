"""The last reading of the monitor, which one process passes to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from include.testbeds.base import LAST_DURATIONS


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

    def record(self, operator: str, durations_ms: Sequence[float], limit_ms: float) -> None:
        """Count items that are done, the last one last; those above the limit are late."""
        late = sum(each > limit_ms for each in durations_ms)
        self.recorded[operator] = self.recorded.get(operator, 0) + len(durations_ms)
        self.late[operator] = self.late.get(operator, 0) + late
        last = self.durations_ms.get(operator, [])
        self.durations_ms[operator] = [*last, *durations_ms][-LAST_DURATIONS:]
