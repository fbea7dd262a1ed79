"""Everything wrong with a spec: its shapes at once, then its names, whichever way it comes in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from include.controllers import CONTROLLERS
from include.experiment.axes import unfolded
from include.experiment.form import batch_params, experiment_params
from include.experiment.matrix import runs_in_file
from include.experiment.params import matrix_from_params, run_from_params
from include.experiment.problems import least_duration_min
from include.experiment.run import resolve
from include.experiment.spec import parse_spec
from include.model.errors import SpecError
from tests.builders import run_spec
from tests.command_line import refused, said
from tests.problems import problems_told

SHAPES = {  # what is wrong, in the order of the spec and of both forms, and what is said of it
    "name": ("Bad Name", "use up to 64 small letters, digits, - and _"),
    "seeds": (-1, "greater than or equal to 0, got -1"),
}
NAMES = {
    "topology": ("nowhere.yaml", "nowhere.yaml; check the path"),
    "patterns": ({"name": "trace", "path": "nowhere.csv"}, "nowhere.csv; check the path"),
    "controllers": ({"name": "btuu"}, "Did you mean 'btu'?"),
    "btus_min": (-10, "btu_min must be a multiple of 0.25 and at least 0.25"),
    "duration_min": (-5, "duration_min must be a multiple of 0.25 and at least 0.5"),
    "testbed": ("simulatd", "Did you mean 'simulated'?"),
    "flavor": ("tiny", "unknown flavor 'tiny'"),
    "price_books": (["btu15"], "Did you mean 'btu10'?"),
    "faults": ({"earthquakes": 1}, "faults.earthquakes: unknown field"),
    "calibration": ("nope", "unknown calibration"),
    "hosts": (-1, "hosts must not be negative"),
    "max_hosts": (0, "max_hosts must be at least 1"),
}
STAGES = {"shapes": SHAPES, "names": NAMES}
A_POINT = run_spec(pattern="constant")
MINE = {"name": "mine", "controllers": "btu", "patterns": "constant"}


def a_file(folder: Path, **fields: Any) -> Path:
    path = folder / "spec.yaml"
    path.write_text(json.dumps(fields))
    return path


def of_a_file(stage: str, folder: Path) -> None:
    wrong = {field: value for field, (value, _) in STAGES[stage].items()}
    runs_in_file(a_file(folder, **MINE | wrong))


def of_one_run(stage: str, folder: Path) -> None:
    wrong = {field: value for field, (value, _) in STAGES[stage].items()}
    called = {"name": "experiment", "seeds": "seed", "btus_min": "btu_min"}
    params = {called.get(name, name): value for name, value in wrong.items()}
    if stage == "names":
        params |= {"pattern": "trace", "trace": "nowhere.csv", "controller": "btuu"}
        params = {name: value for name, value in params.items() if name in experiment_params()}
    run_from_params(params)


def of_a_matrix(stage: str, folder: Path) -> None:
    wrong = {field: value for field, (value, _) in STAGES[stage].items()}
    params = {{"name": "experiment"}.get(name, name): value for name, value in wrong.items()}
    lists = {"seeds", "topology", "controllers", "patterns", "btus_min"} & params.keys()
    params |= {name: [params[name]] for name in lists}
    if stage == "names":
        params["controllers"] = ["btuu"]
    matrix_from_params(
        {name: value for name, value in params.items() if name in batch_params()}, 10
    )


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("ask", [of_a_file, of_one_run, of_a_matrix])
def test_every_problem_of_a_stage_is_told_at_once(ask: Any, stage: str, tmp_path: Path) -> None:
    reported = problems_told(ask, stage, tmp_path)
    for _, message in STAGES[stage].values():
        assert sum(message in text for text in reported) == 1, (message, reported)
    assert len(reported) == len(STAGES[stage])
    assert not any("^[" in text for text in reported)


@pytest.mark.parametrize("stage", STAGES)
def test_a_file_is_told_in_its_own_order(stage: str, tmp_path: Path) -> None:
    wrong = {field: value for field, (value, _) in STAGES[stage].items()}
    others = {name: value for name, value in MINE.items() if name not in wrong}
    reported = problems_told(runs_in_file, a_file(tmp_path, **wrong, **others))
    for (_, message), text in zip(STAGES[stage].values(), reported, strict=True):
        assert message in text


def test_an_empty_field_and_a_text_without_quotes_say_what_to_write(tmp_path: Path) -> None:
    path = a_file(tmp_path, **MINE | {"name": 2026, "hosts": None, "topology": None})
    assert problems_told(runs_in_file, path) == [
        "name: must be a text; put it in quotes if it is one, got 2026",
        "hosts: is empty; give a value, or remove the field",
        "topology.0: is empty; give a value, or remove the field",
    ]


def test_a_field_of_a_wrong_shape_hides_only_its_own_names(tmp_path: Path) -> None:
    path = a_file(
        tmp_path,
        controllers=[{"name": "btu", "observations": {"sweep": []}}, 3, "btuu"],
        seeds=["x", 1],
        monitor_every_s="often",
        colour="red",
        flavor="tiny",
    )
    text = "\n".join(problems_told(runs_in_file, path))
    for part in ("name: missing", "sweep: [...]", "seeds.0", "often", "colour: unknown field"):
        assert part in text
    assert "unknown flavor 'tiny'" in text
    assert "btuu" not in text


@pytest.mark.parametrize("axis", ["controllers", "patterns", "btus_min", "seeds", "topology"])
def test_what_is_listed_twice_is_one_problem(axis: str, tmp_path: Path) -> None:
    value = {"btus_min": 10, "seeds": 3, "topology": "manufacturing"}.get(axis, "constant")
    value = "btu" if axis == "controllers" else value
    (problem,) = problems_told(runs_in_file, a_file(tmp_path, **MINE | {axis: [value, value]}))
    assert problem == f"{axis}: {value} is listed twice; list it once"


@pytest.mark.parametrize("seeds", ["1-5", "1..5", "1 - 3, 4, 5", [1, "2-5"], ["1-5", ""]])
def test_a_range_of_seeds_is_every_seed_of_it(seeds: Any) -> None:
    spec = parse_spec(MINE | {"seeds": seeds}, source="x")
    assert spec.seeds == [1, 2, 3, 4, 5]
    assert [run.seed for run in matrix_from_params({"seeds": seeds}, 10)][:5] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ("5-1,4-2", "seeds: 5-1 goes down; write 1-5; 4-2 goes down; write 2-4"),
        ("1-20000", "seeds: 1-20000 stands for 20000 seeds, and an experiment has at most 10000"),
        ("-5", "seeds: input should be greater than or equal to 0, got '-5'"),
        ("9223372036854775808", "seeds: input should be less than or equal to"),
        ("1,x", "seeds: input should be a valid integer"),
        (" ", "seeds: is empty; give at least one value"),
    ],
)
@pytest.mark.parametrize("command", [["reproduce"], ["paper", "henge"]])
def test_seeds_of_the_command_line_are_checked_in_the_same_words(
    command: list[str], seeds: str, message: str, tmp_path: Path
) -> None:
    done = refused(*command, f"--seeds={seeds}", "--root", str(tmp_path))
    assert message in done
    assert not list(tmp_path.iterdir())


def test_a_study_that_cannot_be_written_ends_before_its_first_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = refused("reproduce", "--root", tmp_path / "file")
    assert (
        f"reproduction cannot be written: {tmp_path / 'file'} is a file; name a folder" in message
    )


def test_runs_are_counted_before_any_is_made(tmp_path: Path) -> None:
    """The product has 10**15 runs: whoever makes one after the other does not come to an end."""
    many = list(range(1, 100_001))
    path = a_file(tmp_path, **MINE | {"seeds": many, "btus_min": many})
    (problem,) = problems_told(runs_in_file, path)
    assert "these are 10000000000 runs (100000 btus_min x 100000 seeds)" in problem
    assert "take some values out" in problem


def test_choices_are_counted_before_any_sweep_is_unfolded(tmp_path: Path) -> None:
    """The product has 10**12 choices: whoever makes one after the other comes to no end."""
    sweep = {"sweep": list(range(10_000))}
    btuu = {"name": "btuu", "a": sweep, "b": sweep, "c": sweep}
    path = a_file(tmp_path, **MINE | {"controllers": ["fixed", btuu]})
    (many,) = problems_told(runs_in_file, path)
    assert many.startswith("controllers: the sweeps stand for 1000000000000 choices")
    assert "at most 10000 runs; take some values out" in many


def test_many_sweeps_together_are_counted_too(tmp_path: Path) -> None:
    swept = [{"name": "btu", option: {"sweep": list(range(4000))}} for option in ("a", "b", "c")]
    reported = problems_told(runs_in_file, a_file(tmp_path, **MINE | {"controllers": swept}))
    assert "the sweeps stand for 12000 choices" in reported[0]


class Counted:
    """A value that counts how often it is compared."""

    compared = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return isinstance(other, Counted) and self.value == other.value


def test_values_of_a_sweep_are_not_compared_with_all_others() -> None:
    with pytest.raises(ValueError, match=r"option a: \[1\] is listed twice in its sweep; list"):
        unfolded({"name": "btu", "a": {"sweep": [[1], {}, [1]]}})
    many = [Counted(value) for value in range(2000)]
    assert len(unfolded({"name": "btu", "a": {"sweep": many}})) == 2000
    assert Counted.compared < 20_000


@pytest.mark.parametrize("form", [experiment_params(), batch_params()])
def test_airflow_neither_refuses_nor_clamps_what_we_check(form: dict[str, Any]) -> None:
    for name, field in form.items():
        assert not {"minimum", "maximum", "exclusiveMinimum", "pattern"} & field.keys(), name
        if name != "report":
            for value in (-5, "x y", None, ["x"], {}):
                jsonschema.validate(value, field)


def test_a_name_of_an_option_that_is_no_text_is_told(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("{name: x, controllers: [{name: btu, observations: {1: 2, a: 3}}, threshold]}")
    problems = problems_told(matrix_from_params, {"spec": str(spec)}, 10)
    assert any("names of options are texts; write '1' in quotes" in one for one in problems)


def test_a_param_that_nobody_knows_is_named_also_beside_a_spec() -> None:
    (problem,) = problems_told(run_from_params, {"controler": "fixed"})
    assert "unknown param 'controler'. Did you mean 'controller'?" in problem
    (problem,) = problems_told(matrix_from_params, {"spec": "demo", "eachcell": "task"}, 10)
    assert "unknown param 'eachcell'. Did you mean 'each_cell'?" in problem


def test_a_trace_is_named_in_one_place(tmp_path: Path) -> None:
    (tmp_path / "rate.csv").write_text("time_s,level\n0,1\n60,2\n")
    trace = str(tmp_path / "rate.csv")
    params = {"pattern": "trace", "trace": trace, "pattern_options": {"path": "other.csv"}}
    assert problems_told(run_from_params, params) == [
        "trace and pattern_options both name a file; leave one of them out"
    ]


def test_the_shortest_run_has_two_readings_of_the_monitor() -> None:
    assert least_duration_min(15) == 0.5
    assert run_from_params({"duration_min": 0.5}).duration_min == 0.5
    (problem,) = problems_told(run_from_params, {"duration_min": 0.25})
    assert "at least 0.5 (the monitor reads every 15 s), got 0.25" in problem


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("btu_min", 1e308, "btu_min must be at most 527040, a year, got 1e+308"),
        ("btu_min", float("inf"), "btu_min must be at most 527040, a year, got inf"),
        ("btu_min", float("-inf"), "btu_min must be a multiple of 0.25"),
        ("btu_min", float("nan"), "btu_min must be at most 527040, a year, got nan"),
        ("duration_min", 1e308, "at most 20160, two weeks, got 1e+308"),
        ("duration_min", float("nan"), "at most 20160, two weeks, got nan"),
        ("monitor_every_s", 1e-320, "monitor_every_s must be a number of at least 0.001"),
        ("monitor_every_s", float("inf"), "monitor_every_s must be a number of at least 0.001"),
        ("monitor_every_s", float("nan"), "monitor_every_s must be a number of at least 0.001"),
    ],
)
def test_numbers_that_nobody_can_count_are_one_problem_beside_others(
    field: str, value: float, message: str
) -> None:
    for controller in CONTROLLERS:
        point = replace(A_POINT, controller=controller, price_books=("btu15",), **{field: value})
        reported = problems_told(resolve, point)
        assert len(reported) == 2, reported
        assert sum(message in problem for problem in reported) == 1, reported


def test_check_names_the_calibration_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("based_on: manufacturing\n")
    spec = tmp_path / "mine.yaml"
    spec.write_text(json.dumps(MINE | {"calibration": ["manufacturing_paused", "own.yaml"]}))
    lines = [line.rpartition(", ")[2] for line in said("check", spec).splitlines()]
    assert {"calibration manufacturing_paused", "calibration own.yaml"} <= set(lines)


def test_an_experiment_that_comes_along_needs_its_name_only() -> None:
    assert "btu-random_walk_1-btu10-s1" in said("check", "demo")
    assert "random_walk_1 seed 1" in said("bound", "demo", "--no-floor")
    for command in ("run", "bound"):
        assert "Did you mean 'demo'?" in refused(command, "demmo")
        assert "there is no file var/demmo; check" in refused(command, "var/demmo")


def test_what_was_meant_by_a_spec_is_told_where_it_is_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(json.dumps(MINE))
    assert "no spec mine comes along; did you mean mine.yaml?" in refused("check", "mine")
    assert "did you mean demo?" in refused("check", "specs/demo.yaml")
    (tmp_path / "demo.yaml").write_text(json.dumps(MINE))
    assert "btu-random_walk_1-btu10-s1" in said("check", "demo")
    assert said("check", "demo.yaml") == said("check", "mine.yaml")


def test_a_name_of_a_spec_that_is_no_name_of_a_file_is_unknown() -> None:
    with pytest.raises(SpecError, match="unknown spec 'aaa") as told:
        matrix_from_params({"spec": "a" * 5000}, 10)
    assert len(str(told.value)) < 2000
