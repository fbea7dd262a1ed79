"""The trigger forms of the DAGs: what can be filled in, and how it becomes one run or many."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from include.arrivals import PATTERNS
from include.controllers import CONTROLLERS
from include.experiment.prices import PRICE_BOOKS
from include.experiment.problems import problems_of
from include.experiment.spec import RunSpec, load_spec, parse_spec
from include.model.errors import SpecError, unknown_name
from include.testbeds import TESTBEDS
from include.testbeds.flavors import FLAVORS
from include.topologies.load import topology_names

MAX_MINUTES = 20160
SPECS = Path(__file__).with_name("specs")
NAMED = 4
"""How many cells of a matrix a problem names; the others are counted."""


def experiment_params() -> dict[str, dict[str, Any]]:
    """Per param, the keyword arguments of an Airflow ``Param``: default and JSON schema."""
    return {
        **_what_runs(),
        **_where_it_runs(),
        **_fine_tuning(),
    }


def run_from_params(params: Mapping[str, Any]) -> RunSpec:
    """The run that a filled-in form asks for. Raises SpecError with every problem at once.

    Names that no registry knows are reported later, by `resolve`, with everything else that
    needs looking up.
    """
    known = experiment_params()
    values = {name: params.get(name, known[name]["default"]) for name in known}
    pattern = {"name": values["pattern"], **_mapping("pattern_options", values)}
    if values["trace"]:
        pattern["path"] = str(Path(values["trace"]).expanduser())
    spec = parse_spec(
        {
            "name": values["experiment"],
            "controllers": [
                {"name": values["controller"], **_mapping("controller_options", values)}
            ],
            "patterns": [pattern],
            "btus_min": [values["btu_min"]],
            "seeds": [values["seed"]],
            "duration_min": values["duration_min"],
            "topology": values["topology"],
            "testbed": values["testbed"],
            "flavor": values["flavor"],
            "calibration": values["calibration"] or "",
            "faults": _mapping("faults", values),
            "price_books": list(values["price_books"]),
        },
        source="the params",
    )
    run, *more = spec.points()
    if more:
        runs = f"a sweep asks for {len(more) + 1} runs, this DAG makes one"
        raise SpecError("the params", [f"{runs}; trigger experiment_batch or sweep"])
    return run


def batch_params() -> dict[str, dict[str, Any]]:
    """The form of a matrix: a spec file, or one field per axis and what all cells share."""
    return {
        "spec": {
            "default": None,
            "type": ["string", "null"],
            "examples": sorted(path.stem for path in SPECS.glob("*.yaml")),
            "title": "Spec file",
            "description": "One that comes with the project, or the path of your own .yaml file. "
            "Its matrix runs, and nothing below counts.",
            "section": "What runs",
        },
        **_axes(),
        **_where_it_runs(),
        **{name: _fine_tuning()[name] for name in ("faults", "calibration")},
    }


def matrix_from_params(params: Mapping[str, Any], most_cells: int) -> list[RunSpec]:
    """Every cell that a filled-in form of a matrix asks for, controllers slowest, seeds fastest.

    ``most_cells`` is how many there may be. Raises SpecError with every problem of every cell
    at once; a problem that several cells share is told once, with the cells that have it.
    """
    known = batch_params()
    values = {name: params.get(name, known[name]["default"]) for name in known}
    if values["spec"]:
        source = f"spec {values['spec']}"
        cells = list(load_spec(_spec_path(values["spec"])).points())
    else:
        source = "the params"
        raw = {name: value for name, value in values.items() if name not in ("spec", "experiment")}
        raw |= {
            "name": values["experiment"],
            "calibration": values["calibration"] or "",
            "faults": _mapping("faults", values),
        }
        cells = list(parse_spec(raw, source=source).points())
    if problems := list(_matrix_problems(cells, most_cells)):
        raise SpecError(source, problems)
    return cells


def _spec_path(text: str) -> Path:
    """The file that a name or a path means. Raises SpecError for a name that is not known."""
    if text.endswith((".yaml", ".yml")):
        return Path(text).expanduser()
    path = SPECS / f"{text}.yaml"
    if not path.is_file():
        known = [one.stem for one in SPECS.glob("*.yaml")]
        sentence = unknown_name("spec", text, known)
        raise SpecError("spec", [f"{sentence} A path must end with .yaml."])
    return path


def _matrix_problems(cells: Sequence[RunSpec], most_cells: int) -> Iterator[str]:
    if len(cells) > most_cells:
        yield (
            f"the matrix has {len(cells)} cells, and at most {most_cells} can be tasks of one DAG "
            "run; take some values out of an axis, or split the matrix into several experiments"
        )
    runs = Counter(cell.run_id for cell in cells)
    if twice := [run for run, times in runs.items() if times > 1]:
        yield f"asked for more than once: {', '.join(twice)}; remove what is repeated on an axis"
    having: dict[str, list[str]] = {}
    for cell in cells:
        for problem in problems_of(cell):
            having.setdefault(problem, []).append(cell.run_id)
    for problem, names in having.items():
        if len(names) == len(cells):
            yield problem
        else:
            more = f" and {len(names) - NAMED}" if len(names) > NAMED else ""
            yield f"{problem} ({', '.join(names[:NAMED])}{more} of {len(cells)} cells)"


def _mapping(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    value = values[name] or {}
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError as error:
            raise SpecError("the params", [f"{name} is not JSON: {error}"]) from error
    if not isinstance(value, Mapping):
        raise SpecError("the params", [f"{name} must be a mapping of options, got {value!r}"])
    return dict(value)


def _what_runs() -> dict[str, dict[str, Any]]:
    section = "What runs"
    return {
        "experiment": {
            "default": "experiment",
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$",
            "title": "Experiment",
            "description": "Results are kept under this name: small letters, digits, - and _.",
            "section": section,
        },
        "topology": {
            "default": "manufacturing",
            "type": "string",
            "examples": list(topology_names()),
            "title": "Topology",
            "description": "One that comes with the project, or the path of your own .yaml file.",
            "section": section,
        },
        "pattern": _choice("random_walk_1", PATTERNS, "Arrival pattern", section),
        "controller": _choice("btu", CONTROLLERS, "Controller", section),
        "btu_min": {
            "default": 10,
            "type": "number",
            "minimum": 0.25,
            "maximum": MAX_MINUTES,
            "title": "BTU (minutes)",
            "description": "Billing time unit; a run is cut into windows of this length.",
            "section": section,
        },
        "seed": {
            "default": 1,
            "type": "integer",
            "minimum": 0,
            "title": "Seed",
            "description": "The same spec and seed give the same measurements.",
            "section": section,
        },
        "duration_min": {
            "default": 120,
            "type": "number",
            "minimum": 0.25,
            "maximum": MAX_MINUTES,
            "title": "Duration (minutes)",
            "description": "How long items arrive.",
            "section": section,
        },
    }


def _axes() -> dict[str, dict[str, Any]]:
    one = _what_runs()
    section = "What runs"
    whole = {"type": "array", "minItems": 1, "section": section}
    files = {"trace"}  # a pattern that reads a file needs an option, so it needs a spec file
    return {
        "experiment": one["experiment"],
        "topology": one["topology"],
        "controllers": _choices(["btu", "threshold"], CONTROLLERS, "Controllers", section),
        "patterns": _choices(
            ["random_walk_1"], [name for name in PATTERNS if name not in files], "Patterns", section
        ),
        "btus_min": {
            "default": [10],
            **whole,
            "items": {"type": "number", "minimum": 0.25, "maximum": MAX_MINUTES},
            "title": "BTUs (minutes)",
            "description": "For example [10, 30, 60].",
        },
        "seeds": {
            "default": [1],
            **whole,
            "items": {"type": "integer", "minimum": 0},
            "title": "Seeds",
            "description": "For example [1, 2, 3]: as many runs of everything else.",
        },
        "duration_min": one["duration_min"],
    }


def _where_it_runs() -> dict[str, dict[str, Any]]:
    section = "Where it runs and what it costs"
    return {
        "testbed": _choice("simulated", TESTBEDS, "Testbed", section),
        "flavor": _choice("docker-4cpu-7gb", FLAVORS, "Host flavor", section),
        "price_books": {
            **_choices(["btu10", "btu30", "btu60"], PRICE_BOOKS, "Price books", section),
            "description": "The same leases are priced by every book.",
        },
    }


def _fine_tuning() -> dict[str, dict[str, Any]]:
    section = "Fine tuning"
    options = {"default": {}, "type": ["object", "null"], "section": section}
    return {
        "trace": {
            "default": None,
            "type": ["string", "null"],
            "title": "Trace file",
            "description": "For the pattern trace: CSV or Parquet with time_s and level.",
            "section": section,
        },
        "pattern_options": {
            **options,
            "title": "Pattern options",
            "description": 'For example {"level": 6} for the pattern constant.',
        },
        "controller_options": {
            **options,
            "title": "Controller options",
            "description": 'For example {"scale_up_above_items": 100} for threshold.',
        },
        "faults": {
            **options,
            "title": "Faults",
            "description": 'For example {"host_losses_per_hour": 0.5}; none by default.',
        },
        "calibration": {
            "default": None,
            "type": ["string", "null"],
            "title": "Calibration",
            "description": "Name or path; empty takes the one that fits the topology.",
            "section": section,
        },
    }


def _choice(default: str, known: Mapping[str, Any], title: str, section: str) -> dict[str, Any]:
    return {
        "default": default,
        "type": "string",
        "enum": list(known),
        "title": title,
        "section": section,
    }


def _choices(
    default: list[str], known: Collection[str], title: str, section: str
) -> dict[str, Any]:
    return {
        "default": default,
        "type": "array",
        "items": {"type": "string", "enum": list(known)},
        "examples": list(known),
        "minItems": 1,
        "title": title,
        "description": f"Any of {', '.join(known)}.",
        "section": section,
    }
