"""Drift: equal bytes are said to be equal, and what moved is named with how far."""

from __future__ import annotations

import csv

import pytest

from include.runs.stages import run_all, store_of
from include.studies.drift import (
    CELL_COLUMNS,
    Baseline,
    baselines,
    drift,
    moved_runs,
    run_digests,
    set_baseline,
    verdict_of,
)
from tests.builders import run_spec

RUNS = {"one": {"spec_hash": "a", "measurements_sha256": "b"}}


def a_cell(mean: float, metric: str = "resource_cost"):
    return {
        "pattern": "p", "controller": "btu", "btu_min": 10.0, "metric": metric,
        "mean": mean, "sigma": None, "runs": 1,
    }  # fmt: skip


def test_no_baseline_is_none(tmp_path):
    assert baselines(tmp_path) == []


def test_the_same_again_is_bit_identical(tmp_path):
    set_baseline(tmp_path, [a_cell(60)], RUNS)
    (stored,) = baselines(tmp_path)
    rows = drift(stored, [a_cell(60)])
    assert [row["state"] for row in rows] == ["same"]
    assert moved_runs(stored, RUNS) == []
    assert verdict_of(stored, rows, []) == "Bit-identical to the stored baseline: all 1 runs."


def test_a_metric_that_the_baseline_does_not_have_has_not_moved(tmp_path):
    set_baseline(tmp_path, [a_cell(60)], {})
    (stored,) = baselines(tmp_path)
    rows = drift(stored, [a_cell(60), a_cell(7, "strict_relaxed_compliance")])
    assert [(row["metric"], row["state"]) for row in rows] == [("resource_cost", "same")]


def test_cells_that_moved_say_how_far(tmp_path):
    set_baseline(tmp_path, [a_cell(60), a_cell(1, "gone_cost")], RUNS)
    (stored,) = baselines(tmp_path)
    rows = drift(stored, [a_cell(63), a_cell(2) | {"btu_min": 30.0}])
    assert {(row["metric"], row["btu_min"]): row["state"] for row in rows} == {
        ("resource_cost", 10.0): "moved", ("gone_cost", 10.0): "gone",
        ("resource_cost", 30.0): "new",
    }  # fmt: skip
    moved = next(row for row in rows if row["state"] == "moved")
    assert (moved["moved"], moved["moved_percent"]) == (3, pytest.approx(5))
    changed = {"one": {"spec_hash": "a", "measurements_sha256": "c"}}
    assert moved_runs(stored, changed) == ["one"]
    assert verdict_of(stored, rows, ["one"]) == (
        "Against the stored baseline: 1 runs differ; 3 of 3 cells moved, at most by 5.00 %."
    )


def test_runs_in_one_of_the_two_only_have_moved():
    stored = Baseline("stored", {}, RUNS)
    assert moved_runs(stored, {"two": RUNS["one"]}) == ["one", "two"]


def test_a_committed_baseline_has_the_digits_of_its_file(tmp_path):
    path = tmp_path / "committed.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(CELL_COLUMNS)
        writer.writerow(["p", "btu", "10", "resource_cost", "60.1235", "", "3"])
    (committed,) = baselines(tmp_path, path)
    assert [row["state"] for row in drift(committed, [a_cell(60.12345678)])] == ["same"]
    assert [row["state"] for row in drift(committed, [a_cell(60.1237)])] == ["moved"]


def test_digests_are_of_the_measured_rows(tmp_path):
    digests = []
    for root, seed in ((tmp_path / "a", 1), (tmp_path / "b", 1), (tmp_path / "c", 2)):
        spec = run_spec(experiment="e", pattern="constant", btu_min=1, seed=seed, duration_min=1)
        run_all(spec, root)
        digests.append(run_digests(store_of(spec, root).folder, [spec.run_id])[spec.run_id])
    assert digests[0] == digests[1] != digests[2]


def test_cells_that_name_scenarios_and_have_no_btu_are_kept_too(tmp_path):
    one = {"scenario": "lab", "controller": "kalman-ekf", "metric": "vm_time_h", "mean": 8.0,
           "sigma": 0.1, "runs": 20}  # fmt: skip
    set_baseline(tmp_path, [one], RUNS)
    (stored,) = baselines(tmp_path)
    (row,) = drift(stored, [{**one, "mean": 9.0}])
    assert (row["pattern"], row["state"], row["moved"]) == ("lab", "moved", 1.0)
