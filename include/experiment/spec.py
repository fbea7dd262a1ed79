"""What a user asks for: one YAML file, or the params of a DAG, as points to run.

Every field that may hold a list is an axis, and so is an option with a sweep (``axes.py``); an
experiment is the product of its axes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from include.experiment.axes import unfolded
from include.inputs import input_file
from include.model.errors import SpecError, unknown_name
from include.topologies.load import read_yaml, run_defaults, validation_problems


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One point of an experiment: names and numbers, nothing looked up yet."""

    experiment: str
    controller: str
    pattern: str
    btu_min: float
    seed: int
    duration_min: float
    topology: str = "manufacturing"
    testbed: str = "simulated"
    flavor: str = "docker-4cpu-7gb"
    calibration: str = ""
    """Name or path; empty means the one named like the topology, else ``default``."""
    controller_options: Mapping[str, Any] = field(default_factory=dict)
    pattern_options: Mapping[str, Any] = field(default_factory=dict)
    faults: Mapping[str, Any] = field(default_factory=dict)
    price_books: tuple[str, ...] = ("btu10", "btu30", "btu60")
    monitor_every_s: float = 15.0
    hosts: int = 0
    """Leased before the first item; 0 means as many as the first instances need."""
    max_hosts: int = 1000

    def __post_init__(self) -> None:
        """Ten minutes are ten minutes, written as 10 or 10.0: ids and hashes must not differ."""
        object.__setattr__(self, "btu_min", float(self.btu_min))
        object.__setattr__(self, "duration_min", float(self.duration_min))
        object.__setattr__(self, "monitor_every_s", float(self.monitor_every_s))

    @property
    def run_id(self) -> str:
        """Readable and unique: two specs that differ in anything have two ids."""
        digest = hashlib.sha256(self.to_json().encode()).hexdigest()[:6]
        return f"{self.controller}-{self.pattern}-btu{self.btu_min:g}-s{self.seed}-{digest}"

    @property
    def window_s(self) -> float:
        """Windows are as long as a BTU."""
        return self.btu_min * 60

    @property
    def duration_s(self) -> float:
        """How long items arrive."""
        return self.duration_min * 60

    @property
    def windows(self) -> int:
        """How many windows the run is cut into; the last one may be shorter."""
        return max(1, math.ceil(self.duration_s / self.window_s - 1e-9))

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """The inverse of :meth:`to_json`."""
        return TypeAdapter(cls).validate_json(text)


@dataclass(frozen=True, slots=True)
class Choice:
    """A name and its options: `btu`, or `{name: threshold, scale_up_above_items: 100}`."""

    name: str
    options: dict[str, Any]


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _as_choice(value: Any) -> Any:
    if isinstance(value, Choice):
        return value
    if isinstance(value, str):
        return {"name": value, "options": {}}
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return {"name": value["name"], "options": {k: v for k, v in value.items() if k != "name"}}
    raise ValueError("give a name, or a mapping with name and options")


Choices = Annotated[
    list[Annotated[Choice, BeforeValidator(_as_choice)]],
    BeforeValidator(unfolded),
    Field(min_length=1),
]
Minutes = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Conditions(BaseModel):
    """What a run takes from its spec, else from its topology's file, else from here."""

    model_config = ConfigDict(extra="forbid")

    patterns: Choices
    btus_min: Annotated[list[Minutes], BeforeValidator(_as_list), Field(min_length=1)] = [10]
    duration_min: Minutes = 120
    testbed: str = "simulated"
    flavor: str = "docker-4cpu-7gb"
    calibration: str = ""
    price_books: Annotated[list[str], BeforeValidator(_as_list), Field(min_length=1)] = [
        "btu10",
        "btu30",
        "btu60",
    ]
    monitor_every_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 15
    hosts: Annotated[int, Field(ge=0)] = 0
    max_hosts: Annotated[int, Field(ge=1)] = 1000


class ExperimentSpec(Conditions):
    """The YAML file. Only ``name`` and ``controllers`` are required, and ``patterns`` where the
    topology's file names none. ``without`` names, by topology, controllers that cannot act on it.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    controllers: Choices
    patterns: Choices | None = None  # type: ignore[assignment]
    topology: Annotated[list[str], BeforeValidator(_as_list), Field(min_length=1)] = [
        "manufacturing"
    ]
    seeds: Annotated[
        list[Annotated[int, Field(ge=0)]], BeforeValidator(_as_list), Field(min_length=1)
    ] = [1]
    faults: dict[str, Any] = {}
    without: dict[str, list[str]] = {}

    @model_validator(mode="after")
    def _without_what_is_there(self) -> Self:
        """A misspelt name would leave nothing out."""
        named = {one.name for one in self.controllers}
        for topology, left_out in self.without.items():
            if topology not in self.topology:
                raise ValueError(f"without: {unknown_name('topology', topology, self.topology)}")
            for name in left_out:
                if name not in named:
                    raise ValueError(f"without: {unknown_name('controller', name, named)}")
            if named <= set(left_out):
                raise ValueError(f"without: no controller is left for {topology}")
        return self

    def points(self) -> Iterator[RunSpec]:
        """Every point of the product, topologies slowest, then controllers, seeds fastest.

        Raises SpecError when neither the spec nor a topology's file names a pattern.
        """
        for topology in self.topology:
            yield from self._points_of(topology)

    def _points_of(self, topology: str) -> Iterator[RunSpec]:
        given = self.model_dump(include=self.model_fields_set & Conditions.model_fields.keys())
        given |= {"patterns": self.patterns} if self.patterns else {}
        try:
            under = Conditions.model_validate({**run_defaults(topology), **given})
        except ValidationError as error:
            raise SpecError(f"{self.name} on {topology}", validation_problems(error)) from error
        left_out = self.without.get(topology, ())
        controllers = [one for one in self.controllers if one.name not in left_out]
        axes = product(controllers, under.patterns, under.btus_min, self.seeds)
        for controller, pattern, btu_min, seed in axes:
            yield RunSpec(
                experiment=self.name,
                controller=controller.name,
                controller_options=controller.options,
                pattern=pattern.name,
                pattern_options=pattern.options,
                btu_min=btu_min,
                seed=seed,
                duration_min=under.duration_min,
                topology=topology,
                testbed=under.testbed,
                flavor=under.flavor,
                calibration=under.calibration,
                faults=self.faults,
                price_books=tuple(under.price_books),
                monitor_every_s=under.monitor_every_s,
                hosts=under.hosts,
                max_hosts=under.max_hosts,
            )


def parse_spec(raw: Any, *, source: str) -> ExperimentSpec:
    """A spec from plain values. Raises SpecError with every problem of its form at once."""
    try:
        return ExperimentSpec.model_validate(raw if raw is not None else {})
    except ValidationError as error:
        raise SpecError(source, validation_problems(error)) from error


def load_spec(path: Path) -> ExperimentSpec:
    """A spec from a YAML file; paths in it are relative to the file.

    Raises SpecError when there is no such file or it is not a spec.
    """
    input_file(path, "spec")
    try:
        raw = read_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecError(path.name, [f"not readable as YAML: {error}"]) from error
    spec = parse_spec(raw, source=path.name)
    for pattern in spec.patterns or []:
        if "path" in pattern.options:
            pattern.options["path"] = str((path.parent / str(pattern.options["path"])).resolve())
    spec.topology = [_beside(path, one) for one in spec.topology]
    spec.without = {_beside(path, one): names for one, names in spec.without.items()}
    if spec.calibration:
        spec.calibration = _beside(path, spec.calibration)
    return spec


def _beside(path: Path, name: str) -> str:
    """A name stays a name; a file is looked for beside the spec."""
    return str((path.parent / name).resolve()) if name.endswith((".yaml", ".yml")) else name
