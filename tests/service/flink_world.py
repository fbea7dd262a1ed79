"""A small Flink in virtual time: source, map and sink, whose map may fall behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from include.service.reading import JobReading, OperatorReading, TaskManagerReading

NAMES = {"source": "Source: events", "map": "map", "sink": "sink"}
WORK_S = {"source": 0.0, "map": 0.005, "sink": 0.001}


@dataclass
class World:
    """A fluid queue before ``map``, which has ``counts`` instances; ``load`` is records/s at t."""

    load: Callable[[float], float] = lambda t: 100.0
    now_s: float = 1_800_000_000.0
    job: str = "a" * 32
    name: str = "orders"
    counts: dict[str, int] = field(default_factory=lambda: {"source": 1, "map": 2, "sink": 1})
    most: dict[str, int] = field(default_factory=lambda: {"source": 1, "map": 2, "sink": 1})
    started_s: float = 1_799_999_000.0
    down_s: float = 0.0
    down_until_s: float = 0.0
    restarts: int = 0
    pending: float = 0.0
    done: float = 0.0
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WORK_S, 0.0))
    lasted_s: float = 0.0
    managers: int = 2
    source_most: int = 128
    """As many subtasks as the source may have at most."""

    def advance(self, seconds: float, step_s: float = 1.0) -> None:
        for _ in range(round(seconds / step_s)):
            self.now_s += step_s
            self.pending += self.load(self.now_s) * step_s
            if self.now_s < self.down_until_s:
                continue
            if self.down_until_s:
                self.started_s, self.down_until_s = self.now_s, 0.0
            done = min(self.pending, self.counts["map"] / WORK_S["map"] * step_s)
            self.pending -= done
            self.done += done
            self.lasted_s += step_s
            for name, work_s in WORK_S.items():
                self.spent[name] += done * work_s

    def after(self, seconds: float) -> JobReading:
        """What a poll says after so long."""
        self.advance(seconds)
        return self.reading()

    def restart(self, seconds: float, **counts: int) -> None:
        """Down for so long, with other instances; counters begin again."""
        self.down_s, self.down_until_s = self.now_s, self.now_s + seconds
        self.restarts += 1
        self.counts |= counts
        self.done, self.lasted_s = 0.0, 0.0
        self.spent = dict.fromkeys(WORK_S, 0.0)

    @property
    def running(self) -> bool:
        return not self.down_until_s

    def reading(self) -> JobReading:
        """What a poll of it says, without the way over HTTP."""
        return JobReading(
            at_s=self.now_s,
            job=self.job,
            name=self.name,
            state="RUNNING" if self.running else "RESTARTING",
            started_s=self.started_s if self.running else 0.0,
            operators=tuple(self._operator(name) for name in NAMES),
            edges=(("source_events", "map"), ("map", "sink")),
            task_managers=tuple(
                TaskManagerReading(id=f"tm-{i}", slots=2, free_slots=0, reserved_cores=2.0)
                for i in range(self.managers)
            ),
            checkpoint_running=False,
            last_checkpoint_s=self.now_s - 3,
            restarts=self.restarts,
            elastic=True,
            down_s=self.down_s,
        )

    def _operator(self, name: str) -> OperatorReading:
        count, busy = self.counts[name], self.spent[name]
        whole = self.lasted_s * count
        return OperatorReading(
            operator="source_events" if name == "source" else name,
            vertex=vertex(name),
            parallelism=count,
            asked_least=1,
            asked_most=self.most[name],
            max_parallelism=self.source_most if name == "source" else 128,
            slot_group="default",
            records_in=self.done if name != "source" else None,
            records_out=self.done if name != "sink" else 0.0,
            busy_s=busy,
            idle_s=max(0.0, whole - busy),
            back_pressured_s=0.0,
            busy_share=0.5,
            busiest_share=0.6,
            pending_records=self.pending if name == "source" else None,
        )


def vertex(name: str) -> str:
    return (name.encode().hex() + "0" * 32)[:32]
