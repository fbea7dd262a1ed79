"""What can be set about a run on Flink: its pace, its queues, its checkpoints and its deadlines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from include.model.errors import SpecError
from include.model.topology import Topology
from include.testbeds.calibrations import Parameters, calibration_folders, service_times
from include.testbeds.live.calibration import NoFaults, real_time_problems
from include.workloads.topology_file import Bounded, NotNegative, Positive

FOLDERS = calibration_folders("flink", Path(__file__).parent)


def _exact(bounds: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= bounds[0] == bounds[1]:
        raise ValueError(f"give the same number of seconds twice, at least 0, got {bounds}")
    return bounds


Exact = Annotated[tuple[float, float], AfterValidator(_exact)]
"""A range elsewhere; here the testbed waits for exactly so long."""


class FlinkCalibration(Bounded, BaseModel):
    """How a run on Flink is set up; see calibrations/default.yaml for units."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service_ms: dict[str, Positive] = {}
    service_cv: NotNegative = 0.5
    memory_factor: Positive = 1
    time_scale: Positive = 1
    sample_every_items: Annotated[int, Field(ge=1)] = 1
    queue: Literal["engine", "heap"] = "engine"
    work: Literal["wait", "burn"] = "wait"
    placement: Literal["flink", "steered"] = "flink"
    slots_per_host: Annotated[int, Field(ge=0)] = 0
    checkpoint_every_s: Positive = 5
    host_boot_s: Exact = (15, 15)
    instance_start_s: Exact = (0, 0)
    drain_s: NotNegative = 0
    """Nothing drains: what a stopped instance has is state, and another one gets it."""
    boot_within_s: Positive = 120
    rescale_within_s: Positive = 60
    silent_for_s: Positive = 6
    lag_limit_ms: Positive = 100
    state_mb: dict[str, NotNegative] = {}

    def complete(self, topology: Topology) -> FlinkCalibration:
        """With a service time for every operator. Raises SpecError with what Flink cannot run."""
        if problems := real_time_problems(topology, "this job", "folder"):
            raise SpecError(f"topology {topology.name}", problems)
        service_ms = service_times(self.service_ms, topology)
        return self.model_copy(update={"service_ms": service_ms})


PARAMETERS = Parameters(FlinkCalibration, NoFaults, FOLDERS)
