"""What one poll of a running Flink job says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

UNCOUNTED = "metrics of "
"""Begins what a reading may lack of an operator, in `JobReading.missing`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorReading:
    """One vertex of the job graph: operators that Flink has chained are one.

    Counters count since this attempt of the job began, summed over subtasks; None is what could
    not be had. Shares are means over subtasks of the last seconds, 0 to 1.
    """

    operator: str
    """Small letters, digits and ``_``; unique in the job, and the same after a redeployment."""
    vertex: str
    """Flink's id."""
    parallelism: int
    """Subtasks that run."""
    asked_least: int
    asked_most: int
    """Bounds of the job's resource requirements; where a job has none, the parallelism."""
    max_parallelism: int = 0
    """Most that the job itself allows; 0 where nobody says it."""
    slot_group: str = ""
    """Vertices of one group share slots: each slot has one subtask of each of them."""
    records_in: float | None = None
    records_out: float | None = None
    busy_s: float | None = None
    idle_s: float | None = None
    back_pressured_s: float | None = None
    """Counters of seconds: what the three grow by is the time that passed times the subtasks."""
    busy_share: float | None = None
    busiest_share: float | None = None
    """Of the subtask that was busy most."""
    idle_share: float | None = None
    back_pressured_share: float | None = None
    pending_records: float | None = None
    """What waits outside Flink for a source, by its connector; sources alone may have it."""
    buffered_s: float | None = None
    """How long what is in its input buffers waits, as Flink estimates it; mean over subtasks. Far
    too long where few records come."""
    watermark_ms: float | None = None
    """The lowest input watermark of a subtask, epoch milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskManagerReading:
    """One registered TaskManager."""

    id: str
    slots: int
    free_slots: int
    cpu_load: float | None = None
    """Share of its machine or container that its JVM used lately, 0 to 1."""
    cpu_s: float | None = None
    """CPU time of its JVM since its start, seconds."""
    cores: float | None = None
    """Of its machine or container."""
    reserved_cores: float | None = None
    """As it is configured (`taskmanager.cpu.cores`); Flink's default is its slots."""
    memory_bytes: float | None = None
    """In use: heap and what the JVM uses beside it."""
    memory_limit_bytes: float | None = None
    """Of its whole process, as it is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReading:
    """One poll of one job. Times are epoch seconds of the clock of this machine."""

    at_s: float
    """When the poll began."""
    job: str
    """Flink's id; a job that is deployed again gets another one."""
    name: str
    state: str
    """RUNNING only while every task runs; else Flink's word for the job or its tasks."""
    started_s: float
    """When the last task was deployed, by Flink's clock; 0 while not all run."""
    operators: tuple[OperatorReading, ...]
    edges: tuple[tuple[str, str], ...]
    """From operator, to operator."""
    task_managers: tuple[TaskManagerReading, ...]
    checkpoint_running: bool
    last_checkpoint_s: float | None
    """When the newest complete checkpoint was triggered; None: there is none."""
    restarts: int | None
    """Since this job id was submitted."""
    elastic: bool = False
    """Whether Flink lets others change the parallelism: it has resource requirements, and is not in
    reactive mode."""
    up_s: float = 0.0
    """When the last task began to run, its state restored; likewise. 0 where nobody says it."""
    down_s: float = 0.0
    """When it went down before it last began to run, by Flink's clock; 0 where nobody says it."""
    missing: tuple[str, ...] = ()
    """What this poll could not get, in words."""
    url: str = ""
    """The address that it was read at."""

    @property
    def running(self) -> bool:
        return self.state == "RUNNING"

    @property
    def counted(self) -> bool:
        """Whether metrics of all operators could be read; else some would count as nothing."""
        return not any(line.startswith(UNCOUNTED) for line in self.missing)

    @property
    def ran_s(self) -> float:
        """For how long its tasks have run, by their own counters: clocks need not agree. 0 where it
        is not known."""
        spent = [
            ((op.busy_s or 0.0) + (op.idle_s or 0.0) + (op.back_pressured_s or 0.0))
            / max(1, op.parallelism)
            for op in self.operators
        ]
        return max(spent, default=0.0)

    @property
    def instances(self) -> dict[str, int]:
        """Subtasks that run of every operator."""
        return {op.operator: op.parallelism for op in self.operators}

    @property
    def slots(self) -> int:
        """Slots that the job takes."""
        return self.slots_with(self.instances)

    @property
    def asked_slots(self) -> int:
        """Slots that it takes with as many subtasks as are asked for at most."""
        return self.slots_with({op.operator: op.asked_most for op in self.operators})

    def slots_with(self, counts: Mapping[str, int]) -> int:
        """Slots that it takes with so many subtasks of every operator: of each slot sharing group
        its largest parallelism."""
        most: dict[str, int] = {}
        for op in self.operators:
            most[op.slot_group] = max(counts[op.operator], most.get(op.slot_group, 0))
        return sum(most.values())

    @property
    def sources(self) -> tuple[str, ...]:
        """Operators that nothing flows into."""
        targets = {target for _, target in self.edges}
        return tuple(op.operator for op in self.operators if op.operator not in targets)

    @property
    def scaled(self) -> tuple[str, ...]:
        """Operators whose parallelism may be chosen: all but sources that have one subtask for
        ever."""
        return tuple(
            op.operator
            for op in self.operators
            if op.max_parallelism > 1 or op.operator not in self.sources
        )
