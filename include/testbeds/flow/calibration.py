"""The fluid testbed's free parameters and faults: those of the per-item one, and some more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, Field, ValidationError

from include.inputs import input_file
from include.model.errors import SpecError, unknown_name
from include.model.topology import Topology
from include.testbeds.simulated import calibration as simulated
from include.testbeds.simulated.calibration import NotNegative
from include.topologies.load import read_yaml, validation_problems

HERE = Path(__file__).parent / "calibrations"
Positive = Annotated[float, Field(gt=0)]


class Calibration(simulated.Calibration):
    """How fast and how noisy the simulated world is; see calibrations/default.yaml."""

    step_s: Positive = 1
    local_latency_ms: NotNegative | None = None
    arrival_cv: NotNegative = 0
    fluctuation_cv: NotNegative = 0
    fluctuation_s: Positive = 10
    settle_s: Positive = 30
    background_cores: NotNegative = 0
    overhead_cores: NotNegative = 0
    migration_pause_s: NotNegative = 0.5
    state_mb_per_s: Positive = 100
    rescale_pause_s: NotNegative = 0
    own_queues: bool = False

    def complete(self, topology: Topology) -> Calibration:
        """With a service time for every operator. Raises SpecError naming those without one."""
        completed = super().complete(topology)
        return self.model_copy(update={"service_ms": completed.service_ms})


def _periods(periods: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    for start_s, end_s, *_ in periods:
        if not 0 <= start_s < end_s:
            raise ValueError(f"a period begins before it ends, got {start_s:g} to {end_s:g}")
    return tuple(sorted(periods))


Outages = Annotated[tuple[tuple[float, float], ...], AfterValidator(_periods)]
Spikes = Annotated[tuple[tuple[float, float, NotNegative], ...], AfterValidator(_periods)]


class Faults(simulated.Faults):
    """What may go wrong, by chance or at given seconds of the run; all off by default."""

    outages: Outages = ()
    """[start_s, end_s]: no statistics arrive."""
    cpu_spikes: Spikes = ()
    """[start_s, end_s, cores]: other processes want as many cores on every host."""


def calibration_names() -> tuple[str, ...]:
    """Names of the calibrations: those of the per-item testbed work here, too."""
    own = {path.stem for path in HERE.glob("*.yaml")}
    return tuple(sorted(own | set(simulated.calibration_names())))


def calibration_for(topology_name: str) -> str:
    """The calibration whose name the topology's begins with, else ``default``."""
    fitting = [name for name in calibration_names() if topology_name.startswith(name)]
    return max(fitting, key=len, default="default")


def load_calibration(name_or_path: str) -> Calibration:
    """A calibration by name, or from a YAML file. Raises SpecError with every problem."""
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        path = HERE / f"{name_or_path}.yaml"
        if not path.is_file():
            path = simulated.HERE / path.name
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
