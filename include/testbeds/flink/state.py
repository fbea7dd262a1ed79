"""Everything a process must know to look after a run on Flink, and the files it is in."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from include.testbeds.base import TestbedConfig
from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.flink.cluster import FlinkCluster, Ports
from include.testbeds.flink.fleet import FlinkFleet, FlinkHost, FlinkInstance
from include.testbeds.flink.installation import flink_state, installation
from include.testbeds.flink.instances import Starts
from include.testbeds.flink.rest import Rest
from include.testbeds.live.files import HEARTBEAT
from include.testbeds.live.processes import NOT_STARTED, DetachedProcess
from include.testbeds.live.reading import LiveReading
from include.testbeds.live.record import RunRecord

CONTROLLER = "controller"
"""The cause of a start of the job that somebody decided on."""
PROVIDER = "provider"
"""The TaskManager that is there for the sources: no host of the run, and nobody pays for it."""


def run_folder(run: str) -> Path:
    """Everything a run has to remember; gone once it has given back all."""
    return flink_state() / "runs" / run


def kept_logs(run: str) -> Path:
    """Where the logs of a run are once it has given back."""
    return flink_state() / "logs" / run


@dataclass(slots=True, kw_only=True)
class FlinkReading(LiveReading):
    """With what an engine says beside what a broker does; its ``busy_of`` is by start of the job
    and subtask."""

    busiest: dict[str, float] = field(default_factory=dict)
    longest: dict[str, int] = field(default_factory=dict)
    oldest_s: dict[str, float] = field(default_factory=dict)
    lags: dict[str, list[int]] = field(default_factory=dict)
    """How often timers were how late, by start of the job and subtask."""
    certain: dict[str, int] = field(default_factory=dict)
    """Items of an operator that no restart can undo, so far."""

    def count_certain(self, operator: str, items: int) -> int:
        """Count items that no restart can undo any more.

        Returns how many items must have arrived that the counters, which are older than the
        checkpoint, had not seen come; they are in ``arrived`` now.
        """
        self.certain[operator] = self.certain.get(operator, 0) + items
        unseen = max(0, self.certain[operator] - self.arrived[operator])
        self.arrived[operator] += unseen
        return unseen


@dataclass(slots=True, kw_only=True)
class Rescale:
    """What was asked of Flink, until the job is up again. Times are seconds of the run."""

    asked_s: float
    cause: str
    before: int
    graph: str
    """The start of the job that is to end."""
    leaving: list[str] = field(default_factory=list)
    """Hosts that end with it."""
    again: bool = False
    """Nothing changes but places, so Flink would not start the job again by itself."""
    trigger: str = ""
    done: bool = False
    """Its checkpoint is complete."""
    held_up_by: list[str] = field(default_factory=list)
    """Sources and operators with tasks that kept its checkpoint from beginning."""
    held_up_until_s: float = 0.0
    troubled: bool = False


@dataclass(slots=True, kw_only=True)
class PendingRescale:
    """A start of the job that is up, and whose row waits until its gap can be seen."""

    asked_s: float
    cause: str
    before: int
    after: int
    graph: str
    previous: str
    checkpoint_s: float
    checkpoint_bytes: int
    up_s: float


@dataclass
class FlinkState(RunRecord[FlinkHost, FlinkInstance]):
    """A run on Flink. Its file is written at every change, before what it announces."""

    config: TestbedConfig
    calibration: FlinkCalibration
    fleet: FlinkFleet = field(default_factory=FlinkFleet)
    reading: FlinkReading = field(default_factory=FlinkReading)
    ports: Ports = field(default_factory=lambda: Ports(0, 0))
    job_manager: DetachedProcess = NOT_STARTED
    provider: DetachedProcess = NOT_STARTED
    graph: str = ""
    """The start of the job that was settled last."""
    names: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """By start of the job and operator: which instance each subtask is."""
    asked: dict[str, int] = field(default_factory=dict)
    rescale: Rescale | None = None
    restarts: list[PendingRescale] = field(default_factory=list)
    counted_below: int = 0
    """Row files before this checkpoint have been handed over."""
    failed_checkpoints: int = 0
    again: int = 0
    crashed: bool = False
    """Something was lost since the job was up last."""
    job_started_s: float = 0.0
    job_starts: int = 0
    job_changes: int = 0
    job_paused_in_all_s: float = 0.0

    @property
    def folder(self) -> Path:
        return run_folder(self.run)

    @property
    def operators(self) -> tuple[str, ...]:
        return self.config.topology.operator_names

    @cached_property
    def starts(self) -> Starts:
        return Starts(self.folder, self.operators)

    @property
    def rest(self) -> Rest:
        return Rest(self.ports.rest, self.job)

    @property
    def job(self) -> str:
        """Its id, the same whichever process asks."""
        return uuid5(NAMESPACE_URL, f"{self.folder}:{self.ports.rest}").hex

    @property
    def cluster(self) -> FlinkCluster:
        return FlinkCluster(self.folder, installation(), self.calibration, self.ports, self.job)

    def touch(self) -> None:
        """Somebody looks after the run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / HEARTBEAT).touch()
