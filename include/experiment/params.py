"""From a filled-in form of a DAG to one run or many, and back."""

from __future__ import annotations

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
from include.experiment.lines import entries_of, numbers_of, options_of
from include.experiment.problems import problems_of
from include.experiment.spec import RunSpec, load_spec, parse_spec
from include.model.errors import SpecError, unknown_name
from include.testbeds import TESTBEDS

OF_A_RUN = (
    "experiment", "topology", "pattern", "controller", "btu_min", "seed", "duration_min", "testbed",
    "flavor", *UNDER_TOPOLOGY,
)  # fmt: skip
"""Params of the form of one run that are called and mean what the field of the run does."""
OPTIONS = ("pattern_options", "controller_options", "faults")
"""Params that are lines of options."""
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
    values, problems = _read(experiment_params(), params)
    pattern = {"name": values["pattern"], **values["pattern_options"]}
    if values["trace"]:
        pattern["path"] = str(Path(values["trace"]).expanduser())
    asked = {
        "name": values["experiment"],
        "controllers": [{"name": values["controller"], **values["controller_options"]}],
        "patterns": [pattern],
        "btus_min": [values["btu_min"]],
        "seeds": [values["seed"]],
        **{name: values[name] for name in ("duration_min", "topology", "testbed", "flavor")},
        "calibration": values["calibration"] or "",
        "faults": values["faults"],
        "price_books": list(values["price_books"]),
        **_given(values),
    }
    points = _points(asked, "the params", problems)
    if len(points) > 1:
        runs = f"a sweep asks for {len(points)} runs, this DAG makes one"
        problems.append(f"{runs}; trigger experiment_batch or sweep")
    if problems:
        looked_up = problems_of(points[0]) if points else []
        raise SpecError("the params", [*problems, *looked_up])
    return points[0]


def matrix_from_params(params: Mapping[str, Any], most_cells: int) -> list[RunSpec]:
    """Every cell that a filled-in form of a matrix asks for, controllers slowest, seeds fastest.

    ``most_cells`` is how many there may be. Raises SpecError with every problem of every cell
    at once; a problem that several cells share is told once, with the cells that have it.
    """
    values, problems = _read(batch_params(), params)
    if values["spec"]:
        source, problems = f"spec {values['spec']}", []
        cells = list(load_spec(_spec_path(values["spec"])).points())
    else:
        source = "the params"
        ours = ("spec", "experiment", "each_cell", *UNDER_TOPOLOGY)
        raw = {name: value for name, value in values.items() if name not in ours} | _given(values)
        raw |= {"name": values["experiment"], "calibration": values["calibration"] or ""}
        cells = _points(raw, source, problems)
    problems += [*_matrix_problems(cells, most_cells), *_way_problems(cells, values["each_cell"])]
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


def _read(
    known: Mapping[str, Mapping[str, Any]], params: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """A value for every param, as the spec wants it, and what is wrong with those of lines."""
    values = {name: params.get(name, known[name]["default"]) for name in known}
    problems: list[str] = []
    for name in known.keys() & OPTIONS:
        values[name] = options_of(name, values[name], problems)
    for name in known.keys() & {"btus_min", "seeds"}:
        values[name] = numbers_of(values[name])
    if isinstance(values["topology"], list):
        values["topology"] = entries_of(values["topology"])
    return values, problems


def _points(asked: Mapping[str, Any], source: str, problems: list[str]) -> list[RunSpec]:
    """The runs that are asked for; none, and more problems, where the form of it is wrong."""
    try:
        return list(parse_spec(asked, source=source).points())
    except SpecError as error:
        problems += error.problems
        return []
