"""From a filled-in form of a DAG to one run or many, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from include.experiment.form import (
    BY_TESTBED,
    UNDER_TOPOLOGY,
    WAYS,
    batch_params,
    experiment_params,
)
from include.experiment.form_lines import MOST_RUNS, choices_of, entries_of, options_of
from include.experiment.matrix import matrix_of
from include.experiment.problems import MOST_WINDOWS
from include.experiment.spec import ExperimentSpec, RunSpec, spec_path
from include.files.inputs import expanded
from include.files.plain_yaml import input_yaml
from include.model.errors import Problem, unknown_name
from include.testbeds import TESTBEDS

OPTIONS = ("pattern_options", "controller_options", "faults")
"""Params that are lines of options."""
CHOSEN_IN = {"pattern_options": "pattern", "controller_options": "controller"}
"""The param that says whose options these are."""
OF_ONE = {
    "name": "experiment",
    "controllers": "controller",
    "patterns": "pattern",
    "btus_min": "btu_min",
    "seeds": "seed",
}
"""What fields of a spec are called in the form of one run."""
LONGEST_TASK_MIN = 24 * 60
OF_MANY = {"name": "experiment"}
"""What fields of a spec are called in the form of a matrix."""


def params_from_run(run: RunSpec) -> dict[str, Any]:
    """The form of one run, filled in so that `run_from_params` gives this run again."""
    return {
        **{name: getattr(run, name) for name in experiment_params() if hasattr(run, name)},
        "price_books": list(run.price_books),
        **{name: dict(getattr(run, name)) for name in OPTIONS},
        "advisors": [advisor.text for advisor in run.advisors],
        "calibration": run.calibration or None,
    }


def run_from_params(params: Mapping[str, Any], most_windows: int = MOST_WINDOWS) -> RunSpec:
    """The run that a filled-in form asks for, of which each window is a task. Raises SpecError with
    every problem at once, also those that need looking up."""
    values, problems = _read_params(experiment_params(), params)
    pattern = {"name": values["pattern"], **values["pattern_options"]}
    if values["trace"]:
        if "path" in pattern:
            text = "trace and pattern_options both name a file; leave one of them out"
            problems.append(Problem("pattern_options", text))
        pattern["path"] = str(expanded(str(values["trace"])))
    raw = {
        "name": values["experiment"],
        "controllers": [{"name": values["controller"], **values["controller_options"]}],
        "patterns": [pattern],
        "btus_min": values["btu_min"],
        "seeds": values["seed"],
        **_spec_fields(values),
    }
    matrix = matrix_of(raw, most=MOST_RUNS, called=OF_ONE)
    if len(matrix.runs) > 1:
        runs = f"these are {len(matrix.runs)} runs, and this DAG makes one"
        problems.append(Problem("", f"{runs}; trigger experiment_batch or sweep"))
    problems += _window_problems(matrix.runs, most_windows)
    everything = replace(matrix, problems=[*problems, *matrix.problems])
    fields = {name: field for field, name in OF_ONE.items()}
    return everything.or_error("the params", (fields.get(name, name) for name in values))[0]


def matrix_from_params(params: Mapping[str, Any], most_cells: int) -> list[RunSpec]:
    """Every cell that a filled-in form of a matrix asks for, controllers slowest, seeds fastest.

    ``most_cells`` is how many there may be, and how many windows where each cell is a DAG run.
    Raises SpecError with every problem of every cell
    at once; a problem that several cells share is told once, with the cells that have it.
    """
    values, problems = _read_params(batch_params(), params)
    if values["spec"]:
        path = spec_path(str(values["spec"]))
        raw, source = input_yaml(path, "spec"), f"spec {values['spec']}"
        problems = [problem for problem in problems if not problem.field]  # of no field but `spec`
        matrix = matrix_of(raw, most=most_cells, path=path)
    else:
        source = "the params"
        raw = {"name": values["experiment"], **_spec_fields(values)}
        matrix = matrix_of(raw, most=most_cells, called=OF_MANY)
    problems += matrix.problems
    problems += [
        Problem("each_cell", problem) for problem in _way_problems(matrix.runs, values["each_cell"])
    ]
    if way_of(matrix.runs, values["each_cell"]) == "dag_run":
        problems += _window_problems(matrix.runs, most_cells)
    fields = raw if isinstance(raw, Mapping) else ()
    return replace(matrix, problems=problems).or_error(source, fields)


def way_of(cells: Sequence[RunSpec], each_cell: str) -> str:
    """How all cells are measured: "task" or "dag_run"."""
    if each_cell != BY_TESTBED:
        return each_cell
    return "dag_run" if any(map(_is_real_time, cells)) else "task"


def _way_problems(cells: Sequence[RunSpec], each_cell: str) -> Iterator[str]:
    if each_cell not in WAYS:
        yield unknown_name("each_cell", each_cell, WAYS)
    for name in sorted({cell.testbed for cell in cells} & TESTBEDS.keys()):
        if each_cell == "task" and TESTBEDS[name].real_time:
            yield (
                f"each_cell is task, and on the testbed {name} a run takes as long as it says; "
                f"choose dag_run or {BY_TESTBED}"
            )


def _window_problems(runs: Sequence[RunSpec], most: int) -> Iterator[Problem]:
    """What a DAG run, which has a task for each window, cannot do."""
    countable = [
        run for run in runs if run.btu_min > 0 and isfinite(run.duration_min / run.btu_min)
    ]
    if (windows := max((run.windows for run in countable), default=0)) > most:
        yield Problem(
            "btu_min",
            f"a DAG run has a task for each BTU, at most {most} (max_map_length of Airflow), and "
            f"these would be {windows}; take a longer BTU, or elsewhere than in real time the DAG "
            "experiment_batch with task for each_cell",
        )
    longest_min = max(
        (min(run.btu_min, run.duration_min) for run in countable if _is_real_time(run)), default=0
    )
    if longest_min > LONGEST_TASK_MIN:
        yield Problem(
            "btu_min",
            f"in real time a task takes as long as a BTU, at most {LONGEST_TASK_MIN} min; got "
            f"{longest_min:g}",
        )


def _is_real_time(run: RunSpec) -> bool:
    return run.testbed in TESTBEDS and TESTBEDS[run.testbed].real_time


def _spec_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Params that have the name of a field of the spec, without optional ones left empty."""
    may_be_empty = ("calibration", *UNDER_TOPOLOGY)
    return {
        name: values[name]
        for name in values
        if name in ExperimentSpec.model_fields
        and not (name in may_be_empty and values[name] in (None, ""))
    }


def _read_params(
    form: Mapping[str, Mapping[str, Any]], params: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """A value for every param, as the spec wants it, and the problems of lines of text."""
    values = {name: params.get(name, form[name]["default"]) for name in form}
    problems = [
        Problem("", unknown_name("param", name, form)) for name in params if name not in form
    ]
    line_problems: list[str]
    for name in OPTIONS:
        if name in form:
            line_problems = []
            values[name] = options_of(name, values[name], line_problems)
            if name in CHOSEN_IN and "name" in values[name]:
                del values[name]["name"]
                line_problems.append(
                    f"{name}: remove name; the field {CHOSEN_IN[name]} says which it is"
                )
            problems += [Problem(name, problem) for problem in line_problems]
    line_problems = []
    values["advisors"] = choices_of("advisors", values["advisors"], line_problems)
    problems += [Problem("advisors", problem) for problem in line_problems]
    if isinstance(values["topology"], list):
        values["topology"] = entries_of(values["topology"])
    return values, problems
