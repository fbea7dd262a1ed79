"""Reads calibration files, for every testbed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import yaml
from pydantic import (
    BaseModel,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from include import workloads
from include.files.inputs import input_text
from include.files.plain_yaml import read_yaml
from include.model.errors import SpecError, unknown_name
from include.model.topology import Topology
from include.testbeds.base import Calibrated
from include.workloads.topologies import problems_without_base, validation_problems
from include.workloads.topology_file import Bounded

C = TypeVar("C", bound=Calibrated)
WORKLOADS = Path(workloads.__file__).parent


class LaterSettings(Bounded):
    """Settings of which those that came LATER are not in what a run is stored as while they are
    off: runs that know nothing of them stay those they were, hash included."""

    LATER: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_what_is_off(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        return {
            name: value
            for name, value in dump(self).items()
            if name not in self.LATER
            or getattr(self, name) != fields[name].get_default(call_default_factory=True)
        }


def calibration_folders(testbed: str, package: Path) -> tuple[Path, ...]:
    """Folders with calibrations of ``testbed``: its package's first, then every workload's."""
    return (package / "calibrations", *sorted(WORKLOADS.glob(f"*/calibrations/{testbed}")))


@dataclass(frozen=True, slots=True)
class Parameters(Generic[C]):
    """Parameters of a testbed: the models of its calibrations and of a spec's ``faults``.

    Calibrations are YAML files, by name or path; the first folder wins.
    """

    model: type[C]
    faults: type[BaseModel]
    folders: tuple[Path, ...]

    def calibration_names(self) -> tuple[str, ...]:
        """Calibrations that come with the project."""
        return _names(self.folders)

    def calibration_for(self, topology_name: str) -> str:
        """The calibration whose name the topology's begins with, else ``default``."""
        fitting = [name for name in self.calibration_names() if topology_name.startswith(name)]
        return max(fitting, key=len, default="default")

    def load_calibration(self, name_or_path: str) -> C:
        """A calibration by name, or from a YAML file. Raises SpecError with every problem."""
        path = self._path(name_or_path)
        try:
            parsed: C = _parsed(self, input_text(path, "calibration"))
        except yaml.YAMLError as error:
            raise SpecError(path.name, [f"not readable as YAML: {error}"]) from error
        except ValidationError as error:
            raise SpecError(path.name, validation_problems(error)) from error
        except SpecError as error:
            raise SpecError(path.name, error.problems) from error
        return parsed

    def based_on(self, raw: Any, ancestors: tuple[str, ...] = ()) -> Any:
        """Merge a file with the calibration of ours it names as ``based_on``; of mappings single
        values, where they are not empty.

        Raises SpecError if the base is unknown or circular.
        """
        if not isinstance(raw, dict) or "based_on" not in raw:
            return raw
        name = str(raw["based_on"])
        bases = [one for one in self.calibration_names() if one not in ancestors]
        if name not in bases:
            problem = (
                f"{unknown_name('calibration', name, bases)} A file of yours cannot be a base."
            )
            others = problems_without_base(self.model, raw)
            raise SpecError("calibration", [f"based_on: {problem}", *others])
        base = read_yaml(input_text(self._path(name), "calibration"))
        merged = dict(self.based_on(base, (*ancestors, name)))
        for key, value in raw.items():
            parts = value and isinstance(value, dict) and isinstance(merged.get(key), dict)
            merged[key] = {**merged[key], **value} if parts else value
        del merged["based_on"]
        return merged

    def _path(self, name_or_path: str) -> Path:
        path = Path(name_or_path)
        if path.suffix in (".yaml", ".yml"):
            return path
        if name_or_path not in self.calibration_names():
            problem = unknown_name("calibration", name_or_path, self.calibration_names())
            raise SpecError("calibration", [f"{problem} Or give the path of a .yaml file."])
        places = (folder / f"{name_or_path}.yaml" for folder in self.folders)
        return next(place for place in places if place.is_file())


@cache
def _names(folders: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(sorted({path.stem for each in folders for path in each.glob("*.yaml")}))


@lru_cache(maxsize=64)
def _parsed(parameters: Parameters[Any], text: str) -> Any:
    """Cached, because every run of a matrix reads the same few files. Models are frozen."""
    return parameters.model.model_validate(parameters.based_on(read_yaml(text)) or {})


def service_times(given_ms: dict[str, float], topology: Topology) -> dict[str, float]:
    """Mean service time of every operator in ms; a calibration's goes before a topology's.

    Raises SpecError naming the operators without one.
    """
    declared_ms = {op.name: op.service_ms for op in topology.operators if op.service_ms}
    # Operators of a tenant are named tenant.operator; one entry serves those of all tenants.
    of_all = {
        name: given_ms[name.partition(".")[2]]
        for name in topology.operator
        if name.partition(".")[2] in given_ms
    }
    service_ms = {**declared_ms, **of_all, **given_ms}
    if problems := [
        f"operator {name} has no service_ms (mean milliseconds per item); add it to the operator "
        "in the topology file or to a calibration file"
        for name in topology.operator
        if name not in service_ms
    ]:
        raise SpecError(f"topology {topology.name}", problems)
    return {name: service_ms[name] for name in topology.operator}
