"""Sweeps without Spark: axes in options, one point, and what is said about all of them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from include.experiment.axes import unfolded
from include.experiment.matrix import runs_in_file
from include.experiment.spec import RunSpec, load_spec
from include.model.compliance import LEVEL_NAMES
from include.model.errors import SpecError
from include.runs.batch import RunResult, run_batch
from include.runs.spark import points as spark
from include.runs.spark import sweep as module
from include.runs.spark.sweep import STATUS, status_of, sweep
from include.testbeds import TESTBEDS
from tests.builders import run_spec
from tests.command_line import refused, said
from tests.problems import problems_told

POINT = run_spec(experiment="swept", pattern="constant", btu_min=5, duration_min=10)


def measured_here(point: RunSpec, root: Path) -> RunResult:
    return run_batch([point], root, processes=1)[0]


def test_an_option_with_a_sweep_is_an_axis():
    choice = {"name": "btu", "a": {"sweep": [1, 2]}, "b": "x", "c": {"sweep": ["p", "q"]}}
    assert unfolded([choice, "fixed"]) == [
        {"name": "btu", "a": 1, "b": "x", "c": "p"},
        {"name": "btu", "a": 1, "b": "x", "c": "q"},
        {"name": "btu", "a": 2, "b": "x", "c": "p"},
        {"name": "btu", "a": 2, "b": "x", "c": "q"},
        "fixed",
    ]


@pytest.mark.parametrize("wrong", [{"sweep": []}, {"sweep": 10}, {"sweep": [1], "by": 2}])
def test_a_sweep_without_values_is_a_problem_of_the_spec(tmp_path, wrong):
    path = tmp_path / "spec.yaml"
    controller = {"name": "btu", "scaling_threshold_items": wrong}
    path.write_text(json.dumps({"name": "x", "controllers": controller, "patterns": "stepwise"}))
    with pytest.raises(SpecError, match="scaling_threshold_items: write"):
        load_spec(path)


def test_every_problem_of_every_point_is_told_once(tmp_path):
    path = tmp_path / "spec.yaml"
    controller = {"name": "btu", "scaling_treshold": {"sweep": [1, 2]}}
    spec = {"name": "x", "controllers": [controller, "btuu"], "patterns": "stepwise"}
    path.write_text(json.dumps(spec | {"seeds": [1, 2, 3]}))
    assert len(problems_told(runs_in_file, path)) == 2


def test_the_status_of_a_point_that_was_measured_and_of_one_that_was_not(tmp_path):
    status = status_of(measured_here(POINT, tmp_path))
    assert (status["outcome"], status["error"]) == ("measured", "")
    assert status["samples"] > 0
    shares = [status[f"{level}_percent"] for level in LEVEL_NAMES]
    assert 0 <= shares[0] <= shares[1] <= shares[2]
    failed = measured_here(replace(POINT, controller="btuu"), tmp_path)
    status = status_of(failed)
    assert (status["outcome"], status["samples"]) == ("failed", 0)
    assert [status[f"{level}_percent"] for level in LEVEL_NAMES] == [None] * 3
    assert "btuu" in status["error"]
    assert "FAILED" in failed.line


def test_what_is_known_is_written_when_a_sweep_is_interrupted(tmp_path, monkeypatch):
    other = replace(POINT, seed=2)

    def one_and_stop(specs, root, *, master, report):
        report(measured_here(specs[0], root))
        raise KeyboardInterrupt

    monkeypatch.setattr(spark, "measure_points", one_and_stop)
    lines = []
    with pytest.raises(KeyboardInterrupt):
        sweep([POINT, other], tmp_path, master="local[1]", say=lines.append)
    with (tmp_path / "swept" / STATUS).open() as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == [POINT.run_id]
    assert "1 measured, 1 not reached" in lines[-1]


def test_statuses_are_on_disk_before_a_sweep_ends_and_it_says_how_long_it_takes(
    tmp_path, monkeypatch
):
    clock_s = iter(range(0, 1000, 20))
    monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(clock_s)))
    points = [replace(POINT, seed=seed) for seed in range(4)]
    result = measured_here(POINT, tmp_path)
    lines: list[str] = []
    progress = module._Progress(points, tmp_path, lines.append, started_s=0.0)
    for point in points[:3]:
        progress.report(replace(result, spec=point))
    with (tmp_path / STATUS).open() as file:
        assert [row["run"] for row in csv.DictReader(file)] == [
            point.run_id for point in points[:3]
        ]
    heads = [line.partition("]")[0] for line in lines[1:]]
    assert heads == ["[1/4", "[2/4, 0.7 min left", "[3/4, 0.3 min left"]


def test_what_spark_cannot_measure_is_told_before_a_run_is_forgotten(tmp_path, monkeypatch):
    spec = tmp_path / "mine.yaml"
    spec.write_text("{name: mine, controllers: fixed, patterns: constant, duration_min: 1}")
    fresh = "run", spec, "--root", tmp_path, "--fresh", "--on"
    said("run", spec, "--root", tmp_path)
    assert "no master of Spark" in refused(*fresh, "x")
    with monkeypatch.context() as patch:
        patch.setitem(TESTBEDS, "simulated", replace(TESTBEDS["simulated"], real_time=True))
        assert "no run in real time (simulated); leave --on out" in refused(*fresh, "local[2]")
        with pytest.raises(SpecError, match="no run in real time"):
            sweep([POINT], tmp_path, say=print)
    assert "reused" in said("run", spec, "--root", tmp_path)


def test_workers_get_what_an_own_controller_imports_from_beside_it(tmp_path, monkeypatch):
    (tmp_path / "rule_of_one.py").write_text("from limit_of_one import LIMIT\n")
    (tmp_path / "limit_of_one.py").write_text("import numpy\nLIMIT = 1\n")
    (tmp_path / "of_nobody.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "rules_of_two").mkdir()  # without an __init__.py
    (tmp_path / "rules_of_two" / "first.py").write_text("import limit_of_one\n")
    files = {tmp_path / "rule_of_one.py", tmp_path / "limit_of_one.py"}
    assert spark.user_roots(["rule_of_one:Rule", "btu"]) == dict.fromkeys(files, tmp_path)
    files = {tmp_path / "rules_of_two", tmp_path / "limit_of_one.py"}
    assert spark.user_roots(["rules_of_two.first:Rule"]) == dict.fromkeys(files, tmp_path)
