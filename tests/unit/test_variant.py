"""The text that tells runs of one controller, and loads of one pattern, apart."""

from __future__ import annotations

import pytest

from include.controllers import CONTROLLERS
from include.experiment.variant import conditions_of, variant_of
from tests.builders import run_spec


def a_spec(**changes):
    return run_spec(**({"controller": "threshold", "duration_min": 120} | changes))


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_a_controller_without_options_has_no_variant(controller):
    assert variant_of(a_spec(controller=controller)) == ""


def test_options_that_differ_from_the_defaults_are_named_in_order():
    options = {"scale_up_twice_above_items": 2000, "scale_up_above_items": 500}
    text = variant_of(a_spec(controller_options=options))
    assert text == "scale_up_above_items=500, scale_up_twice_above_items=2000"


def test_an_option_given_its_default_is_no_variant():
    assert variant_of(a_spec(controller_options={"scale_up_above_items": 250})) == ""
    assert variant_of(a_spec(controller_options={"scale_up_above_items": "250"})) == ""


def test_defaults_are_those_of_the_registered_name():
    fifty = {"controller_options": {"scale_up_above_items": 50}}
    assert variant_of(a_spec(**fifty)) == "scale_up_above_items=50"
    assert variant_of(a_spec(controller="threshold-peerj", **fifty)) == ""


def test_the_usual_conditions_are_not_told():
    assert conditions_of(a_spec()) == ""
    assert conditions_of(a_spec(seed=7, btu_min=60, price_books=("btu60",))) == ""


def test_what_else_was_changed_is_told():
    changed = a_spec(
        pattern="trace",
        pattern_options={"path": "/data/mine.csv", "scale": 2, "speedup": 1.0},
        duration_min=30,
        faults={"instance_crashes_per_hour": 2},
    )
    expected = "duration_min=30, faults.instance_crashes_per_hour=2, path=mine.csv, scale=2"
    assert conditions_of(changed) == expected


def test_runs_that_differ_in_their_calibration_are_told_apart():
    plain, hard = (a_spec(calibration=name) for name in ("", "manufacturing_hard"))
    assert (conditions_of(plain), conditions_of(hard)) == ("", "calibration=manufacturing_hard")
    assert plain.run_id != hard.run_id


def test_what_the_file_of_a_topology_says_is_usual(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("based_on: manufacturing\nname: mine\nrun_with: {duration_min: 45}\n")
    assert conditions_of(a_spec(topology=str(mine), duration_min=45)) == ""
    assert conditions_of(a_spec(topology=str(mine))) == "duration_min=120"
