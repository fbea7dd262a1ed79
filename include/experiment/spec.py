"""What a user asks for: one YAML file, or the params of a DAG, as points to run.

Every field that may hold a list is an axis, and so is an option with a sweep (``axes.py``); an
experiment is the product of its axes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path, PurePath
from typing import Annotated, Any

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
)

from include.experiment.axes import as_list, none_swept, unfolded
from include.experiment.form_lines import numbers_of, seeds_of
from include.files.inputs import beside, beside_if_file, expanded
from include.files.plain_yaml import input_yaml
from include.model.errors import Problem, SpecError, unknown_name
from include.workloads.topologies import run_defaults, validation_problems
from include.workloads.topology_file import Strict, spelled

SPECS = Path(__file__).with_name("specs")
NAMED = "(?!advice-)[a-z0-9][a-z0-9_-]{0,63}"
"""Folders of `advise` lie beside those of experiments and begin with advice-."""
NAME = (
    "use up to 64 small letters, digits, - and _, with a letter or digit first and no advice- "
    "in front"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """A name and its options: `btu`, or `{name: threshold, scale_up_above_items: 100}`."""

    name: str
    options: dict[str, Any]

    @property
    def text(self) -> str:
        """As it could be written, on one line; what is read from it is the same again."""
        if not self.options:
            return self.name
        plain = {"name": self.name, **dict(sorted(self.options.items()))}
        text = yaml.safe_dump(plain, default_flow_style=True, width=math.inf, sort_keys=False)
        return text.strip()

    @property
    def label(self) -> str:
        """What tables and figures call it: `tide care=2`."""
        options = (f" {name}={value}" for name, value in sorted(self.options.items()))
        return self.name + "".join(options)


def _require_texts(value: Any) -> None:
    """Raise ValueError for a name of an option that is no text, which JSON does not have."""
    for key in value if isinstance(value, dict) else ():
        if not isinstance(key, str):
            raise ValueError(f"names of options are texts; write {str(key)!r} in quotes")
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            _require_texts(part)


def _as_choice(value: Any) -> Any:
    if isinstance(value, Choice):
        return value
    if isinstance(value, str):
        return {"name": value, "options": {}}
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        _require_texts(value)
        return {"name": value["name"], "options": {k: v for k, v in value.items() if k != "name"}}
    raise ValueError("give a name, or a mapping with name and options")


Choices = Annotated[
    list[Annotated[Choice, BeforeValidator(_as_choice)]],
    BeforeValidator(unfolded),
    Field(min_length=1),
]
FixedChoices = Annotated[
    list[Annotated[Choice, BeforeValidator(_as_choice)]],
    BeforeValidator(none_swept),
]
"""Choices that are no axis: every run has all of them."""
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Seeds = Annotated[list[Seed], BeforeValidator(seeds_of), Field(min_length=1)]


class Conditions(Strict, BaseModel):
    """What a run takes from its spec, else from its topology's file, else from here."""

    patterns: Choices
    btus_min: Annotated[list[float], BeforeValidator(numbers_of), Field(min_length=1)] = [10]
    duration_min: float = 120
    testbed: str = "simulated"
    flavor: str = "docker-4cpu-7gb"
    calibration: str = ""
    price_books: Annotated[list[str], BeforeValidator(as_list), Field(min_length=1)] = [
        "btu10",
        "btu30",
        "btu60",
    ]
    monitor_every_s: float = 15
    hosts: int = 0
    max_hosts: int = 1000
    summaries_only: bool = False


def default_of(field_: str) -> Any:
    """What a run has where neither its spec nor its topology's file says otherwise."""
    return Conditions.model_fields[field_].get_default()


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
    testbed: str = default_of("testbed")
    flavor: str = default_of("flavor")
    calibration: str = default_of("calibration")
    """Name or path; empty means the one named like the topology, else ``default``."""
    controller_options: Mapping[str, Any] = field(default_factory=dict)
    pattern_options: Mapping[str, Any] = field(default_factory=dict)
    faults: Mapping[str, Any] = field(default_factory=dict)
    price_books: tuple[str, ...] = tuple(default_of("price_books"))
    monitor_every_s: float = default_of("monitor_every_s")
    hosts: int = default_of("hosts")
    """Leased before the first item; 0 means as many as the first instances need."""
    max_hosts: int = default_of("max_hosts")
    advisors: tuple[Choice, ...] = ()
    """Controllers that only say what they would do, beside the one that acts."""
    summaries_only: bool = default_of("summaries_only")
    """Whether single samples are left out of what is stored; all tables are made without them."""

    def __post_init__(self) -> None:
        """Ten minutes are ten minutes, written as 10 or 10.0: ids and hashes must not differ."""
        object.__setattr__(self, "btu_min", float(self.btu_min))
        object.__setattr__(self, "duration_min", float(self.duration_min))
        object.__setattr__(self, "monitor_every_s", float(self.monitor_every_s))
        object.__setattr__(self, "price_books", tuple(self.price_books))

    @cached_property
    def run_id(self) -> str:
        """Readable and unique: two specs that differ in anything have two ids."""
        digest = hashlib.sha256(self.to_json().encode()).hexdigest()[:6]
        # Of an own module:Class the class; a folder's name has neither colons nor spaces.
        controller = re.sub(r"[^\w.-]", "-", self.controller.rpartition(":")[2], flags=re.ASCII)
        return f"{controller}-{self.pattern}-btu{self.btu_min:g}-s{self.seed}-{digest}"

    @property
    def all_controllers(self) -> tuple[Choice, ...]:
        return (Choice(self.controller, dict(self.controller_options)), *self.advisors)

    @property
    def window_s(self) -> float:
        """Windows are as long as a BTU."""
        return self.btu_min * 60

    @property
    def duration_s(self) -> float:
        return self.duration_min * 60

    @property
    def windows(self) -> int:
        """How many windows the run is cut into; the last one may be shorter."""
        return max(1, math.ceil(self.duration_s / self.window_s - 1e-9))

    def to_json(self) -> str:
        return json.dumps(without_empty(asdict(self)), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        return _RUN.validate_json(text)


_RUN = TypeAdapter(RunSpec)
SHARED = tuple(name for name in Conditions.model_fields if name in RunSpec.__dataclass_fields__)
"""Fields that a run takes over as they stand in its spec, its topology's file, or `Conditions`."""


def without_empty(spec: dict[str, Any]) -> dict[str, Any]:
    """Plain values of a run without unused fields of ``LATER``, so that its id and hash are those
    that versions without these fields gave it."""
    return {name: value for name, value in spec.items() if value or name not in LATER}


LATER = ("advisors", "summaries_only")
"""Fields that were added to specs later."""


AXES: Mapping[str, Callable[[Any], list[Any]]] = {
    "controllers": unfolded,
    "patterns": unfolded,
    "topology": as_list,
    "calibration": as_list,
    "btus_min": numbers_of,
    "seeds": seeds_of,
    "price_books": as_list,
}
"""By axis, the function that turns what a file says into a list of values."""


def require_name(experiment: str) -> None:
    """Raise SpecError unless this can be the name of an experiment, and so of a folder."""
    if re.fullmatch(NAMED, experiment) is None:
        raise SpecError("experiment", [f"{NAME}, got {experiment!r}"])


class ExperimentSpec(Conditions):
    """The YAML file. Only ``name`` and ``controllers`` are required, and ``patterns`` where the
    topology's file names none. ``without`` names, by topology, controllers that cannot act on it,
    ``advisors`` controllers that only say what they would do, in every run.
    """

    name: Annotated[str, spelled(NAMED, NAME)]
    controllers: Choices
    patterns: Choices | None = None  # type: ignore[assignment]
    topology: Annotated[list[str], BeforeValidator(as_list), Field(min_length=1)] = [
        "manufacturing"
    ]
    calibration: Annotated[list[str], BeforeValidator(as_list), Field(min_length=1)] = [  # type: ignore[assignment]
        default_of("calibration")
    ]
    seeds: Seeds = [1]
    faults: dict[str, Any] = {}
    advisors: FixedChoices = []
    without: dict[str, list[str]] = {}

    @property
    def runs(self) -> int:
        """Number of runs, computed from the axes alone."""
        others = len(self.patterns or [0]) * len(self.btus_min) * len(self.seeds)
        others *= len(self.calibration)
        counts = Counter(controller.name for controller in self.controllers)
        left_out = sum(
            counts[name]
            for topology in self.topology
            for name in set(self.without.get(topology, ()))
        )
        return others * (len(self.topology) * len(self.controllers) - left_out)

    def problems(self) -> Iterator[Problem]:
        """What is wrong with the axes as such, each with what to do."""
        for axis in (*AXES, "advisors"):
            values = getattr(self, axis) or []
            # Written alike, because 10 and 10.0 are one BTU and a choice has no hash.
            counts = Counter(value.text if isinstance(value, Choice) else value for value in values)
            if twice := [
                f"{value:g}" if isinstance(value, float) else str(value)
                for value, times in counts.items()
                if times > 1
            ]:
                yield Problem(axis, f"{axis}: {', '.join(twice)} is listed twice; list it once")
        files = Counter(PurePath(file).name for file in set(self.calibration))
        for name in (name for name, times in files.items() if times > 1):
            text = f"calibration: several files are called {name}, as tables call them; rename one"
            yield Problem("calibration", text)
        yield from (Problem("without", f"without: {text}") for text in self._left_out_in_vain())

    def _left_out_in_vain(self) -> Iterator[str]:
        """A misspelt name would leave nothing out."""
        names = {controller.name for controller in self.controllers}
        for topology, left_out in self.without.items():
            if topology not in self.topology:
                yield unknown_name("topology", topology, self.topology)
            for name in left_out:
                if name not in names:
                    yield unknown_name("controller", name, names)
            if names <= set(left_out):
                yield f"no controller is left for {topology}; leave fewer out"

    def points(self) -> Iterator[RunSpec]:
        """Every point of the product, topologies slowest, then calibrations and controllers, seeds
        fastest.

        Raises SpecError when neither the spec nor a topology's file names a pattern.
        """
        for topology in self.topology:
            yield from self.points_on(topology)

    def points_on(self, topology: str) -> Iterator[RunSpec]:
        """The points on one topology. Raises SpecError when nothing names a pattern."""
        fields = self.model_fields_set & Conditions.model_fields.keys() - {"calibration"}
        overrides = self.model_dump(include=fields)
        overrides |= {"patterns": self.patterns} if self.patterns else {}
        try:
            conditions = Conditions.model_validate({**run_defaults(topology), **overrides})
        except ValidationError as error:
            raise SpecError(f"{self.name} on {topology}", validation_problems(error)) from error
        calibrations = (
            self.calibration if "calibration" in self.model_fields_set else [conditions.calibration]
        )
        left_out = self.without.get(topology, ())
        controllers = [choice for choice in self.controllers if choice.name not in left_out]
        axes = (calibrations, controllers, conditions.patterns, conditions.btus_min, self.seeds)
        for calibration, controller, pattern, btu_min, seed in product(*axes):
            yield RunSpec(
                experiment=self.name,
                controller=controller.name,
                controller_options=controller.options,
                pattern=pattern.name,
                pattern_options=pattern.options,
                btu_min=btu_min,
                seed=seed,
                topology=topology,
                faults=self.faults,
                advisors=tuple(self.advisors),
                **{name: getattr(conditions, name) for name in SHARED}
                | {"calibration": calibration},
            )


def parse_spec(raw: Any, *, source: str) -> ExperimentSpec:
    """A spec from plain values. Raises SpecError with every problem of its form at once.

    Names are looked up in matrix.py.
    """
    try:
        spec = ExperimentSpec.model_validate(raw if raw is not None else {})
    except ValidationError as error:
        raise SpecError(source, validation_problems(error)) from error
    if problems := [problem.text for problem in spec.problems()]:
        raise SpecError(source, problems)
    return spec


def spec_path(text: str) -> Path:
    """The file that a name or a path means. Raises SpecError for a name that is not known."""
    if text.endswith((".yaml", ".yml")) or "/" in text:
        return expanded(text)
    specs = {path.stem: path for path in SPECS.glob("*.yaml")}
    if text not in specs:
        sentence = unknown_name("spec", text, specs)
        raise SpecError("spec", [f"{sentence} A path must end with .yaml."])
    return specs[text]


def load_spec(path: Path) -> ExperimentSpec:
    """A spec from a YAML file; paths in it are relative to the file.

    Raises SpecError when there is no such file or it is not a spec.
    """
    return located(parse_spec(input_yaml(path, "spec"), source=path.name), path)


def located(spec: ExperimentSpec, path: Path) -> ExperimentSpec:
    """The spec of a file: what it names relatively starts where the file is."""
    for pattern in spec.patterns or []:
        if "path" in pattern.options:
            pattern.options["path"] = beside(path, str(pattern.options["path"]))
    spec.topology = [beside_if_file(path, name) for name in spec.topology]
    if "price_books" in spec.model_fields_set:  # else those of the topology's file
        spec.price_books = [beside_if_file(path, name) for name in spec.price_books]
    spec.without = {
        beside_if_file(path, topology): names for topology, names in spec.without.items()
    }
    if "calibration" in spec.model_fields_set:
        spec.calibration = [beside_if_file(path, name) for name in spec.calibration]
    return spec
