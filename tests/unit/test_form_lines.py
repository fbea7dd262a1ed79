"""What is typed into a form, in every way that people type it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.controllers import CONTROLLERS
from include.experiment.form import batch_params, experiment_params
from include.experiment.form_lines import choices_of, numbers_of, options_of
from include.experiment.options import options_help
from include.experiment.params import matrix_from_params, params_from_run, run_from_params
from include.experiment.spec import Choice
from tests.builders import run_spec
from tests.problems import problems_told


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        (None, {}),
        ([], {}),
        ([""], {}),
        ("", {}),
        (["level = 6"], {"level": 6}),
        (["level=6", "", "  hold_s :  2.5 "], {"level": 6, "hold_s": 2.5}),
        ("formula = final\nupscale_first = false", {"formula": "final", "upscale_first": False}),
        (["levels = [2, 4]"], {"levels": [2, 4]}),
        ({"level": 6}, {"level": 6}),
    ],
)  # fmt: skip
def test_options_are_lines_or_what_a_program_sends(typed: Any, options: dict[str, Any]) -> None:
    problems: list[str] = []
    assert options_of("field", typed, problems) == options
    assert problems == []


def test_every_line_that_is_wrong_is_told() -> None:
    problems: list[str] = []
    lines = ["level", "= 3", "level = 2", "level = 3", "hold_s = [1", "ok = 1", "a b = 1"]
    assert options_of("pattern_options", lines, problems) == {"level": 2, "ok": 1}
    assert [problem.split(": ", 1)[0] for problem in problems] == ["pattern_options"] * 5
    assert "level is given twice" in problems[2]
    options_of("faults", 3, problems)
    assert "must be lines" in problems[-1]


@pytest.mark.parametrize("value", ["!!binary aGk=", "0x_", "[" * 30_000])
def test_what_yaml_cannot_read_is_a_problem_beside_all_others(value: str) -> None:
    problems: list[str] = []
    lines = [f"level = {value}", "hold_s", "ok = 1"]
    assert options_of("pattern_options", lines, problems) == {"ok": 1}
    assert problems[0] == f"pattern_options: {value!r} is not a value of level"
    assert "write `name = value`, got 'hold_s'" in problems[1]


@given(st.lists(st.integers(0, 10**6), min_size=1), st.sampled_from([", ", "\n", " ", ";"]))
def test_numbers_may_stand_in_lines_or_with_commas(numbers: list[int], between: str) -> None:
    typed = between.join(map(str, numbers))
    assert [int(number) for number in numbers_of([typed, ""])] == numbers
    assert numbers_of(numbers) == numbers


def test_a_form_filled_in_by_hand_is_the_run_that_a_program_asks_for() -> None:
    by_hand = {
        "pattern": "constant",
        "pattern_options": ["level = 6", ""],
        "controller": "threshold",
        "controller_options": ["scale_up_above_items = 100"],
        "faults": ["host_losses_per_hour = 0.5"],
    }
    run = run_from_params(by_hand)
    assert run.controller_options == {"scale_up_above_items": 100}
    assert run_from_params(params_from_run(run)) == run


@pytest.mark.parametrize(
    "value", ["1.7", "peak: 2", "true", "2026-01-31", None, True, 1e-05, {"a": ["1", 2.0]}]
)
def test_an_advisor_comes_out_of_a_form_as_it_went_in(value: Any) -> None:
    advisor = Choice("tide", {"version": value})
    problems: list[str] = []
    assert choices_of("advisors", [advisor.text], problems) == [{"name": "tide", "version": value}]
    assert not problems
    run = run_spec(advisors=(Choice("flink-autoscaler", {"version": "1.7"}),))
    assert run_from_params(params_from_run(run)) == run


def test_a_matrix_filled_in_by_hand_is_the_one_that_a_program_asks_for() -> None:
    by_hand = {
        "btus_min": ["10, 30", ""],
        "seeds": ["1", "2", ""],
        "topology": ["manufacturing", ""],
    }
    asked = {"btus_min": [10, 30], "seeds": [1, 2], "topology": ["manufacturing"]}
    assert matrix_from_params(by_hand, 100) == matrix_from_params(asked, 100)
    assert len(matrix_from_params(by_hand, 100)) == 8


@pytest.mark.parametrize("field", ["pattern", "controller"])
@pytest.mark.parametrize("options", [["name = threshold"], {"name": "two_level"}, {"name": None}])
def test_options_do_not_say_whose_they_are(field: str, options: Any) -> None:
    (problem,) = problems_told(run_from_params, {f"{field}_options": options})
    assert problem == f"{field}_options: remove name; the field {field} says which it is"


@pytest.mark.parametrize("form", [experiment_params(), batch_params()])
def test_no_field_needs_json(form: dict[str, dict[str, Any]]) -> None:
    """As Airflow's form chooses a field: an object, or a list of what is no text, is JSON."""
    for name, param in form.items():
        kind = param.get("type")
        kinds = [type_ for type_ in (kind if isinstance(kind, list) else [kind]) if type_ != "null"]
        assert kinds != ["object"], name
        assert len(kinds) == 1, name
        if kinds == ["array"]:
            assert "examples" in param or param["items"].get("type") in (None, "string"), name
        if kind is None:
            assert param["default"] == [], name


def test_the_form_names_every_option_of_every_controller() -> None:
    shown = options_help({name: registration.build for name, registration in CONTROLLERS.items()})
    assert all(name in shown for name in CONTROLLERS)
    assert ": interval_s, reading, scale_up_above_items" in shown  # not the same in all variants
    assert "q_floor = 0.001" in shown
    assert "setting" not in shown
    classes = {
        getattr(registration.build, "func", registration.build)
        for registration in CONTROLLERS.values()
    }
    assert shown.count("\n\n") < len(classes) < len(CONTROLLERS)
