"""From a filled-in form of a DAG to one run or many, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from include.experiment.asked import look_through
from include.experiment.form import (
    BY_TESTBED,
    SPECS,
    UNDER_TOPOLOGY,
    WAYS,
    batch_params,
    experiment_params,
)
from include.experiment.lines import MOST_RUNS, choices_of, entries_of, options_of
from include.experiment.spec import RunSpec, read_spec
from include.model.errors import Problem, SpecError, unknown_name
from include.testbeds import TESTBEDS

OF_A_RUN = (
    "experiment", "topology", "pattern", "controller", "btu_min", "seed", "duration_min", "testbed",
    "flavor", *UNDER_TOPOLOGY, "summaries_only",
)  # fmt: skip
"""Params of the form of one run that are called and mean what the field of the run does."""
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
OF_MANY = {"name": "experiment"}
"""What fields of a spec are called in the form of a matrix."""


def params_from_run(run: RunSpec) -> dict[str, Any]:
    """The form of one run, filled in so that `run_from_params` gives this run again."""
    return {
        **{name: getattr(run, name) for name in OF_A_RUN},
        "price_books": list(run.price_books),
        "pattern_options": dict(run.pattern_options),
        "controller_options": dict(run.controller_options),
        "faults": dict(run.faults),
        "advisors": [one.text for one in run.advisors],
        "calibration": run.calibration or None,
    }


def run_from_params(params: Mapping[str, Any]) -> RunSpec:
    """The run that a filled-in form asks for. Raises SpecError with every problem at once, also
    those that need looking up."""
    values, problems = _read(experiment_params(), params)
    pattern = {"name": values["pattern"], **values["pattern_options"]}
    if values["trace"]:
        pattern["path"] = str(_at_home(str(values["trace"])))
    raw = {
        "name": values["experiment"],
        "controllers": [{"name": values["controller"], **values["controller_options"]}],
        "patterns": [pattern],
        "btus_min": values["btu_min"],
        "seeds": values["seed"],
        **{name: values[name] for name in ("duration_min", "topology", "testbed", "flavor")},
        "faults": values["faults"],
        "advisors": values["advisors"],
        "summaries_only": values["summaries_only"],
        "price_books": values["price_books"],
        **_given(values),
    }
    asked = look_through(raw, most=MOST_RUNS, called=OF_ONE)
    if len(asked.runs) > 1:
        runs = f"these are {len(asked.runs)} runs, and this DAG makes one"
        problems.append(Problem("", f"{runs}; trigger experiment_batch or sweep"))
    everything = replace(asked, problems=[*problems, *asked.problems])
    fields = {name: field for field, name in OF_ONE.items()}
    return everything.or_error("the params", (fields.get(name, name) for name in values))[0]


def matrix_from_params(params: Mapping[str, Any], most_cells: int) -> list[RunSpec]:
    """Every cell that a filled-in form of a matrix asks for, controllers slowest, seeds fastest.

    ``most_cells`` is how many there may be. Raises SpecError with every problem of every cell
    at once; a problem that several cells share is told once, with the cells that have it.
    """
    values, problems = _read(batch_params(), params)
    if values["spec"]:
        path = _spec_path(str(values["spec"]))
        raw, source, problems = read_spec(path), f"spec {values['spec']}", []
        asked = look_through(raw, most=most_cells, path=path)
    else:
        source, left_out = "the params", ("spec", "experiment", "each_cell", "calibration")
        raw = {
            "name": values["experiment"],
            **{name: values[name] for name in values if name not in (*left_out, *UNDER_TOPOLOGY)},
            **_given(values),
        }
        asked = look_through(raw, most=most_cells, called=OF_MANY)
    problems += asked.problems
    problems += [
        Problem("each_cell", one) for one in _way_problems(asked.runs, values["each_cell"])
    ]
    fields = raw if isinstance(raw, Mapping) else ()
    return replace(asked, problems=problems).or_error(source, fields)


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


def _at_home(text: str) -> Path:
    """A path with its ``~`` replaced; of a user who is not there it stays, and is not found."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _spec_path(text: str) -> Path:
    """The file that a name or a path means. Raises SpecError for a name that is not known."""
    if text.endswith((".yaml", ".yml")):
        return _at_home(text)
    path = SPECS / f"{text}.yaml"
    if not path.is_file():
        known = [one.stem for one in SPECS.glob("*.yaml")]
        sentence = unknown_name("spec", text, known)
        raise SpecError("spec", [f"{sentence} A path must end with .yaml."])
    return path


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a form may leave empty, where it does not."""
    names = ("calibration", *UNDER_TOPOLOGY)
    return {name: values[name] for name in names if values[name] not in (None, "")}


def _read(
    known: Mapping[str, Mapping[str, Any]], params: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """A value for every param, as the spec wants it, and what is wrong with those of lines."""
    values = {name: params.get(name, known[name]["default"]) for name in known}
    problems = [
        Problem("", unknown_name("param", name, known)) for name in params if name not in known
    ]
    told: list[str]
    for name in OPTIONS:
        if name in known:
            told = []
            values[name] = options_of(name, values[name], told)
            if name in CHOSEN_IN and "name" in values[name]:
                del values[name]["name"]
                told.append(f"{name}: remove name; the field {CHOSEN_IN[name]} says which it is")
            problems += [Problem(name, one) for one in told]
    told = []
    values["advisors"] = choices_of("advisors", values["advisors"], told)
    problems += [Problem("advisors", one) for one in told]
    if isinstance(values["topology"], list):
        values["topology"] = entries_of(values["topology"])
    return values, problems
