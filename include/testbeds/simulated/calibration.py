"""The simulator's free parameters and the faults it may inject, read from YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from include.inputs import input_file
from include.model.errors import SpecError, unknown_name
from include.model.topology import Topology
from include.topologies.load import read_yaml, validation_problems

HERE = Path(__file__).parent / "calibrations"


def _in_order(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = bounds
    if not 0 <= low <= high:
        raise ValueError(f"give [lowest, highest] with 0 <= lowest <= highest, got {bounds}")
    return bounds


Bounds = Annotated[tuple[float, float], AfterValidator(_in_order)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Calibration(BaseModel):
    """How fast and how noisy the simulated world is; see calibrations/*.yaml for units."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service_ms: dict[str, Annotated[float, Field(gt=0)]] = {}
    service_cv: NotNegative = 0.5
    latency_ms: NotNegative = 5
    stalls_per_hour: NotNegative = 0
    stall_s: Bounds = (5, 20)
    memory_factor: Annotated[float, Field(gt=0)] = 1
    host_boot_s: Bounds = (30, 60)
    instance_start_s: Bounds = (5, 10)
    image_pull_s: Bounds = (5, 15)
    drain_s: NotNegative = 20
    timestamp_resolution_s: NotNegative = 0
    sample_every_items: Annotated[int, Field(ge=1)] = 10
    cpu_noise: NotNegative = 0.02
    cpu_when_busy: Share = 1
    """What an instance shows that works all the time: the rest goes into waiting for input."""
    cpu_drift: NotNegative = 0
    cpu_drift_s: Annotated[float, Field(gt=0)] = 10
    """Slow relative changes of the load that all instances show: deviation and correlation time."""
    pause_on_start_s: NotNegative = 0
    pause_on_stop_s: NotNegative = 0
    """An operator starts no item while state moves: before an instance is ready, after its stop."""
    cpu_in_pause: Share = 0
    transfer_ms: NotNegative = 0
    """Mean (exponential) time that data of an item is on the way, in its age but on no core."""
    held_mb: dict[str, tuple[NotNegative, NotNegative]] = {}
    """By operator: memory of an instance by itself, and state that the instances share."""

    @property
    def pauses(self) -> bool:
        """Whether operators pause while state moves."""
        return self.pause_on_start_s > 0 or self.pause_on_stop_s > 0

    def complete(self, topology: Topology) -> Calibration:
        """With a service time for every operator. Raises SpecError naming those without one."""
        known = {op.name: op.service_ms for op in topology.operators if op.service_ms}
        # Operators of a tenant are named tenant.operator; one entry serves those of all tenants.
        of_all = {
            name: self.service_ms[name.partition(".")[2]]
            for name in topology.operator
            if name.partition(".")[2] in self.service_ms
        }
        service_ms = {**known, **of_all, **self.service_ms}
        missing = [name for name in topology.operator if name not in service_ms]
        if missing:
            raise SpecError(
                f"topology {topology.name}",
                [
                    f"operator {name} has no service_ms (mean milliseconds per item); add it to "
                    "the operator in the topology file or to a calibration file"
                    for name in missing
                ],
            )
        kept = {name: service_ms[name] for name in topology.operator}
        return self.model_copy(update={"service_ms": kept})


class Faults(BaseModel):
    """What may go wrong, all off by default. Rates are per host, per instance, per monitor."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host_boot_failure: Share = 0
    host_boot_delay: Share = 0
    host_boot_delay_s: Bounds = (120, 300)
    host_losses_per_hour: NotNegative = 0
    instance_crashes_per_hour: NotNegative = 0
    monitoring_gaps_per_hour: NotNegative = 0
    monitoring_gap_s: Bounds = (30, 120)


def calibration_names() -> tuple[str, ...]:
    """Names of the calibrations that come with the project."""
    return tuple(sorted(path.stem for path in HERE.glob("*.yaml")))


def calibration_for(topology_name: str) -> str:
    """The calibration whose name the topology's begins with, else ``default``."""
    fitting = [name for name in calibration_names() if topology_name.startswith(name)]
    return max(fitting, key=len, default="default")


def load_calibration(name_or_path: str) -> Calibration:
    """A calibration by name, or from a YAML file. Raises SpecError with every problem."""
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        path = HERE / f"{name_or_path}.yaml"
        if name_or_path not in calibration_names():
            problem = unknown_name("calibration", name_or_path, calibration_names())
            raise SpecError("calibration", [f"{problem} Or give the path of a .yaml file."])
    input_file(path, "calibration")
    try:
        return Calibration.model_validate(read_yaml(path.read_text(encoding="utf-8")) or {})
    except yaml.YAMLError as error:
        raise SpecError(path.name, [f"not readable as YAML: {error}"]) from error
    except ValidationError as error:
        raise SpecError(path.name, validation_problems(error)) from error
