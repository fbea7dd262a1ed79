"""What can be set about servers of a cloud, beside the parameters of the testbed ``docker``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, ValidationError

from include.model.errors import SpecError, unknown_name
from include.testbeds.docker.calibration import Calibration as OfDocker
from include.testbeds.docker.calibration import Faults, Positive
from include.topologies.load import read_yaml, validation_problems

__all__ = ["Calibration", "Faults", "calibration_for", "load_calibration"]
HERE = Path(__file__).parent / "calibrations"


class Calibration(OfDocker):
    """How a run on a cloud is set up; see calibrations/default.yaml."""

    cloud: str = ""
    image: str = "tidebench-host"
    flavors: dict[str, str] = Field(default_factory=dict)
    networks: Annotated[tuple[str, ...], Field(min_length=1)] = ("tidebench",)
    security_groups: tuple[str, ...] = ()
    key_pair: str = ""
    availability_zone: str = ""
    engine_port: Annotated[int, Field(ge=1, le=65535)] = 2375
    boot_within_s: Positive = 300
    order_within_s: Positive = 30
    gone_within_s: Positive = 120
    answer_within_s: Positive = 20
    look_every_s: Positive = 1


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
    if not path.is_file():
        raise SpecError("calibration", [f"there is no file {path}; check the path"])
    try:
        return Calibration.model_validate(read_yaml(path.read_text(encoding="utf-8")) or {})
    except yaml.YAMLError as error:
        raise SpecError(path.name, [f"not readable as YAML: {error}"]) from error
    except ValidationError as error:
        raise SpecError(path.name, validation_problems(error)) from error
