"""What can be set about the live testbed: its pace, its containers and its deadlines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from include.inputs import input_file
from include.model.errors import SpecError, unknown_name
from include.model.topology import Topology
from include.operators.settings import RUN_PATTERN
from include.topologies.load import read_yaml, validation_problems

HERE = Path(__file__).parent / "calibrations"
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class Calibration(BaseModel):
    """How a live run is set up; see calibrations/default.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service_ms: dict[str, Positive] = {}
    """Mean CPU time per item: what the generic operator spends, and the demand that elasticity
    metrics compare with."""
    memory_factor: Positive = 1
    time_scale: Positive = 1
    """Seconds of the run per second of the wall."""
    sample_every_items: Annotated[int, Field(ge=1)] = 5
    timestamp_resolution_s: NotNegative = 0
    prefetch: Annotated[int, Field(ge=1)] = 5
    """Items that an instance holds beside its queue."""
    heartbeat_s: Annotated[int, Field(ge=1)] = 5
    drain_s: NotNegative = 20
    boot_within_s: Positive = 60
    start_within_s: Positive = 120
    silent_for_s: Positive = 10
    """A host that does not answer for so long is lost."""

    def complete(self, topology: Topology) -> Calibration:
        """With a service time for every operator. Raises SpecError with what cannot run live."""
        if problems := list(_problems(topology)):
            raise SpecError(f"topology {topology.name}", problems)
        service_ms = {op.name: op.service_ms for op in topology.operators if op.service_ms}
        # Operators of a tenant are named tenant.operator; one entry serves those of all tenants.
        of_all = {
            name: self.service_ms[name.partition(".")[2]]
            for name in topology.operator
            if name.partition(".")[2] in self.service_ms
        }
        service_ms |= of_all | self.service_ms
        missing = [name for name in topology.operator if name not in service_ms]
        if missing:
            raise SpecError(
                f"topology {topology.name}",
                [
                    f"operator {name} has no service_ms (mean milliseconds of CPU per item); add "
                    "it to the operator in the topology file or to a calibration file"
                    for name in missing
                ],
            )
        kept = {name: service_ms[name] for name in topology.operator}
        return self.model_copy(update={"service_ms": kept})


def _problems(topology: Topology) -> list[str]:
    problems = [
        f"operator {op.name} runs in another one, which containers cannot; give it its own"
        for op in topology.operators
        if op.runs_in
    ]
    problems += [
        f"{name} cannot name a queue: letters, digits, dot, dash and underscore only"
        for name in (*topology.operator, *topology.source)
        if not RUN_PATTERN.fullmatch(name)
    ]
    problems += [
        f"edge {edge.origin} -> {edge.target}: what a source emits arrives as it is, so remove "
        "items_out and items_in"
        for edge in topology.edges
        if edge.origin in topology.source and (edge.items_out, edge.items_in) != (1, 1)
    ]
    return problems


class Faults(BaseModel):
    """None: on a live testbed faults are real."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def calibration_names() -> tuple[str, ...]:
    """Names of the calibrations that come with the testbed."""
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
