"""From a filled-in form of a DAG to one run or many, and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from include.experiment.form import (
    BY_TESTBED,
    SPECS,
    UNDER_TOPOLOGY,
    WAYS,
    batch_params,
    experiment_params,
)
from include.experiment.problems import problems_of
from include.experiment.spec import RunSpec, load_spec, parse_spec
from include.model.errors import SpecError, unknown_name
from include.testbeds import TESTBEDS

OF_A_RUN = (
    "experiment", "topology", "pattern", "controller", "btu_min", "seed", "duration_min", "testbed",
    "flavor", *UNDER_TOPOLOGY,
)  # fmt: skip
"""Params of the form of one run that are called and mean what the field of the run does."""
NAMED = 4
"""How many cells of a matrix a problem names; the others are counted."""


def params_from_run(run: RunSpec) -> dict[str, Any]:
    """The form of one run, filled in so that `run_from_params` gives this run again."""
    return {
        **{name: getattr(run, name) for name in OF_A_RUN},
        "price_books": list(run.price_books),
        "pattern_options": dict(run.pattern_options),
        "controller_options": dict(run.controller_options),
        "faults": dict(run.faults),
        "calibration": run.calibration or None,
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
            **_given(values),
        },
        source="the params",
    )
    run, *more = spec.points()
    if more:
        runs = f"a sweep asks for {len(more) + 1} runs, this DAG makes one"
        raise SpecError("the params", [f"{runs}; trigger experiment_batch or sweep"])
    return run


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
        ours = ("spec", "experiment", "each_cell", *UNDER_TOPOLOGY)
        raw = {name: value for name, value in values.items() if name not in ours} | _given(values)
        raw |= {
            "name": values["experiment"],
            "calibration": values["calibration"] or "",
            "faults": _mapping("faults", values),
        }
        cells = list(parse_spec(raw, source=source).points())
    problems = [*_matrix_problems(cells, most_cells), *_way_problems(cells, values["each_cell"])]
    if problems:
        raise SpecError(source, problems)
    return cells


def way_of(cells: Sequence[RunSpec], each_cell: str) -> str:
    """How the cells are measured that this was asked for, all alike: "task" or "dag_run"."""
    if each_cell != BY_TESTBED:
        return each_cell
    return "dag_run" if any(TESTBEDS[cell.testbed].real_time for cell in cells) else "task"


def _way_problems(cells: Sequence[RunSpec], each_cell: str) -> Iterator[str]:
    if each_cell not in WAYS:
        yield unknown_name("each_cell", each_cell, WAYS)
    for name in sorted({cell.testbed for cell in cells} & TESTBEDS.keys()):
        if each_cell == "task" and TESTBEDS[name].real_time:
            yield (
                f"each_cell is task, and on the testbed {name} a run takes as long as it says; "
                f"choose dag_run or {BY_TESTBED}"
            )


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


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in UNDER_TOPOLOGY if values[name] is not None}


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
