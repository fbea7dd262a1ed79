"""Calibration: the figures of a trial, its errors, and a search that stays within its bounds."""

from __future__ import annotations

import pytest

from include.experiment.prices import PRICE_BOOKS
from include.results.tables.regret import resource_cost
from include.runs import stages
from include.studies.peerj141 import calibration
from include.studies.peerj141.trial import CalibrationRun, attempt, calibrated
from include.testbeds.virtual.calibration import VirtualCalibration
from tests.builders import run_spec


def a_spec(**changes):
    return run_spec(**({"experiment": "trial"} | changes))


def leases(**changes):
    return {"ordered_s": [0.0], "ended_s": [600.0], "paid_until_s": [600.0]} | changes


@pytest.mark.parametrize(
    ("given", "book", "cost"),
    [
        ({}, "btu10", 1),
        ({"ended_s": [601.0]}, "btu10", 2),
        ({"ended_s": [0.0]}, "btu10", 1),
        ({"paid_until_s": [1200.0]}, "btu10", 2),  # prolonged and not used
        ({"paid_until_s": [1200.0]}, "btu30", 3),  # another book sees the lease only
        ({"ended_s": [3601.0]}, "btu60", 12),
    ],
)
def test_leases_are_priced_as_the_cost_table_does(given, book, cost):
    assert resource_cost(leases(**given), PRICE_BOOKS[book], 600.0) == cost


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_trial_gives_the_figures_of_the_tables(tmp_path):
    from include.results.tables.build import build_tables
    from include.results.tables.staged import read_table, staged_path

    spec = a_spec()
    stages.run_all(spec, tmp_path)
    folder = tmp_path / "trial"
    build_tables(folder, master="local[1]")
    trial = attempt(spec, {})
    (overall,) = (
        row for row in read_table(staged_path(folder, "compliance")) if row["scope"] == "overall"
    )
    for row in read_table(staged_path(folder, "cost")):
        figures = trial.figures(PRICE_BOOKS[row["price_book"]])
        for metric, value in figures.items():
            told = overall[f"{metric}_percent"] if metric.endswith("compliance") else row[metric]
            assert value == pytest.approx(told), (row["price_book"], metric)


def test_changes_are_a_calibration_and_reach_the_run():
    values = dict(calibration.START)
    run = calibrated(a_spec(), calibration.changes(values))
    VirtualCalibration.model_validate(run.calibration)
    assert run.calibration["stalls_per_hour"] == values["stalls_per_hour"]
    assert run.topology.operator["O1"].memory_mb == pytest.approx(452 * values["memory_factor"])


def test_the_published_figures_have_no_error():
    trial = CalibrationRun((49.0, 85.0, 89.0), {"btu10": 72.33, "btu30": 0, "btu60": 0}, 0)
    means = calibration.means_of([(a_spec(duration_min=120), trial)])
    errors = calibration.errors_of(means, "btu")
    assert errors.cells == 7
    assert errors.compliance_points == 0
    assert errors.resource_cost_percent == 0
    assert errors.total_cost_percent > 0  # no items, so no penalty


def test_a_pattern_without_figures_has_no_cells():
    trial = CalibrationRun((50.0, 90.0, 95.0), {"btu10": 70.0, "btu30": 70.0, "btu60": 70.0}, 1000)
    spec = a_spec(pattern="random_walk", duration_min=120)
    assert calibration.means_of([(spec, trial)]) == {}


def test_the_file_it_writes_can_be_run():
    import yaml

    values = dict(calibration.START)
    text = calibration.as_yaml(
        values,
        {"btu": calibration.FitErrors(1, 1.0, 2.0, 3.0)},
        {"btu": calibration.FitErrors(1, 1.5, 2.5, 3.5)},
        3,
    )
    assert "seeds 1 to 3" in text
    assert "seeds 4 to 6" in text
    written = VirtualCalibration.model_validate(yaml.safe_load(text))
    assert written.memory_factor == values["memory_factor"]
    assert written.stall_s == (2, values["stall_max_s"])


def test_what_is_held_out_is_not_fitted():
    fitted = calibration.specs(calibration.FITTED, calibration.CONTROLLERS, [1])
    assert {spec.pattern for spec in fitted} == {"stepwise", "random_walk_1"}
    assert len(fitted) == 2 * (3 + 1)
