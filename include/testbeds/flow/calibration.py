"""The fluid testbed's free parameters and faults: those of the per-item one, and some more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from include.testbeds.calibrations import LaterSettings, Parameters, calibration_folders
from include.testbeds.virtual import calibration as virtual
from include.testbeds.virtual.calibration import Bounds
from include.workloads.topology_file import NotNegative, Positive, Share

FOLDERS = calibration_folders("flow", Path(__file__).parent)


class JobRestart(virtual.HotPhase):
    """What it does to a job to be taken down as a whole and deployed again. Times are drawn for
    every restart, uniform between their bounds.
    """

    down_s: Bounds = (0, 0)
    """Nobody processes anything."""


class FlowCalibration(virtual.VirtualCalibration):
    """How fast and how noisy the simulated world is; see calibrations/default.yaml."""

    LATER: ClassVar[frozenset[str]] = (virtual.VirtualCalibration.LATER - {"arrival_cv"}) | {
        "cpu_at_rest", "cpu_window_s", "key_groups", "pass_s", "rest_s", "restart",
    }  # fmt: skip

    IGNORED: ClassVar[tuple[str, ...]] = (
        "buffer_items", "cpu_drift", "cpu_in_pause", "held_mb", "operator_pause_s",
        "pause_on_start_s", "pause_on_stop_s", "prefetch", "transfer_ms",
    )  # fmt: skip
    """What the per-item testbed has and amounts do not."""
    BY_OPERATOR: ClassVar[tuple[str, ...]] = (
        *virtual.VirtualCalibration.BY_OPERATOR, "key_groups", "pass_s", "rest_s",
    )  # fmt: skip

    step_s: Positive = 1
    local_latency_ms: NotNegative | None = None
    fluctuation_cv: NotNegative = 0
    fluctuation_s: Positive = 10
    settle_s: Positive = 30
    background_cores: NotNegative = 0
    overhead_cores: NotNegative = 0
    migration_pause_s: NotNegative = 0.5
    state_mb_per_s: Positive = 100
    rescale_pause_s: NotNegative = 0
    restart: JobRestart | None = None
    own_queues: bool = False
    key_groups: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    rest_s: dict[str, NotNegative] = Field(default_factory=dict)
    pass_s: dict[str, NotNegative] = Field(default_factory=dict)
    cpu_at_rest: Share = 0
    """What an instance shows that has nothing to do; see ``cpu_when_busy``, too."""
    cpu_window_s: NotNegative = 0
    """CPU of instances is the mean of so long, read once in that time; 0: every reading."""
    input_items: Annotated[int, Field(ge=0)] = 0


def _periods(periods: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    for start_s, end_s, *_ in periods:
        if not 0 <= start_s < end_s:
            raise ValueError(f"a period begins before it ends, got {start_s:g} to {end_s:g}")
    return tuple(sorted(periods))


Outages = Annotated[tuple[tuple[float, float], ...], AfterValidator(_periods)]
Spikes = Annotated[tuple[tuple[float, float, NotNegative], ...], AfterValidator(_periods)]


class FlowFaults(virtual.VirtualFaults, LaterSettings):
    """What may go wrong, by chance or at given seconds of the run; all off by default."""

    LATER: ClassVar[frozenset[str]] = frozenset({"restarts"})

    outages: Outages = ()
    """[start_s, end_s]: no statistics arrive."""
    cpu_spikes: Spikes = ()
    """[start_s, end_s, cores]: other processes want as many cores on every host."""
    restarts: tuple[tuple[NotNegative, NotNegative], ...] = ()
    """[at_s, down_s]: the job restarts by itself; the rest is as ``restart`` of the calibration."""


PARAMETERS = Parameters(FlowCalibration, FlowFaults, (*FOLDERS, *virtual.FOLDERS))
