"""How large an experiment is, before anything starts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from include.experiment.matrix import runs_in_file
from include.experiment.size import executions_of, size_of
from include.experiment.spec import RunSpec
from include.model.errors import SpecError
from include.testbeds.simulated.testbed import SimulatedTestbed

SPECS = Path(__file__).parents[2] / "include" / "experiment" / "specs"
SPEC = RunSpec(
    experiment="size", controller="fixed", pattern="constant", pattern_options={"level": 6},
    btu_min=10, seed=1, duration_min=120,
)  # fmt: skip


def test_executions_are_those_of_the_demo_within_a_percent():
    """2,520,124 were counted in a run of two hours at level 6."""
    total, busiest = executions_of(SPEC)
    assert total == pytest.approx(2_520_124, rel=0.01)
    assert busiest == pytest.approx(total / 12)


def test_the_time_is_a_range_that_measured_runs_are_in():
    """Two hours took 0.7 (fixed) to 2.9 times (tide) as long as computed, a report 28 s."""
    size = replace(size_of([SPEC]), time_s=10.0)
    assert "1 run, 2.52 million executions: 5 s to 40 s to measure" in str(size)
    assert "about 30 s for the report" in str(size)


def test_the_report_on_many_runs_takes_about_as_long_as_measured():
    """54 s for 240 runs of two hours, 48 s for 100."""
    for runs, told in ((100, "45 s"), (240, "66 s")):
        assert f"about {told} for the report" in str(replace(size_of([SPEC]), runs=runs))


def test_seeds_multiply():
    single = size_of([SPEC])
    three = size_of([replace(SPEC, seed=seed) for seed in (1, 2, 3)])
    assert three.executions == 3 * single.executions
    assert three.runs == 3


def test_runs_in_which_nothing_arrives_are_told(tmp_path):
    (tmp_path / "late.yaml").write_text(
        "name: late\ntenants: [{name: a, topology: linear, joins_s: 700}]"
    )
    raw = {"name": "mine", "controllers": "btu", "patterns": "constant", "topology": "late.yaml"}
    (tmp_path / "mine.yaml").write_text(json.dumps(raw | {"duration_min": 10, "seeds": [1, 2]}))
    with pytest.raises(SpecError, match=r"ever arrive in 2 of 2 runs, such as btu-.*-s1-.*; raise"):
        runs_in_file(tmp_path / "mine.yaml")


def test_every_seed_is_looked_at(tmp_path):
    """On the second of two days nothing arrives in the first hour."""
    (tmp_path / "load.csv").write_text("time_s,level\n0,1\n86400,0\n90000,1\n")
    pattern = {"name": "trace", "path": "load.csv", "days_as_seeds": True}
    raw = {"name": "mine", "controllers": "btu", "patterns": pattern, "duration_min": 10}
    for seeds, problem in (
        ([1, 2], r"ever arrive in 1 of 2 runs, such as btu-trace-btu10-s2-"),
        ([1, 3], r"load.csv has no day 3: it has 2"),
    ):
        (tmp_path / "mine.yaml").write_text(json.dumps(raw | {"seeds": seeds}))
        with pytest.raises(SpecError, match=problem):
            runs_in_file(tmp_path / "mine.yaml")


def test_real_time_takes_its_time():
    by_the_clock = replace(SPEC, testbed="flink", calibration="manufacturing_fast", duration_min=90)
    size = size_of([SPEC, by_the_clock, replace(by_the_clock, seed=2)])
    assert (size.runs, size.executions) == (1, size_of([SPEC]).executions)
    assert str(size).startswith("2 runs in real time: 3 hours one after another, boots aside; 1 ")
    assert str(size_of([by_the_clock])) == "1 run in real time: 90 min, boots aside"
    assert size_of([by_the_clock]).is_large


@pytest.mark.parametrize(
    ("levels", "what"),
    [
        ({"pattern": {"name": "constant", "level": 1e9}}, "this takes more than a day"),
        ({"rows": "0,1000000000\n60,1000000000"}, "this takes more than a day"),
        ({"rows": "0,1\n60,2", "highest_level": 1e9}, "this takes more than a day"),
        ({"pattern": {"name": "constant", "level": 5e4}, "btu": 120}, "more memory than the"),
    ],
)
def test_what_is_too_large_is_refused_in_words_before_anything_starts(
    levels, what, tmp_path, monkeypatch
):
    monkeypatch.setattr(SimulatedTestbed, "__init__", None)
    pattern = levels.get("pattern") or {"name": "trace", "path": "load.csv"}
    if "rows" in levels:
        (tmp_path / "load.csv").write_text(f"time_s,level\n{levels['rows']}\n")
    if "highest_level" in levels:
        pattern["highest_level"] = levels["highest_level"]
    spec = tmp_path / "mine.yaml"
    btu = levels.get("btu", 10)
    raw = {"name": "mine", "controllers": "btu", "patterns": pattern, "btus_min": btu}
    spec.write_text(json.dumps(raw))
    with pytest.raises(SpecError, match=what) as raised:
        runs_in_file(spec)
    assert "lower the level" in str(raised.value)


@pytest.mark.parametrize("spec", sorted(SPECS.glob("*.yaml")), ids=lambda spec: spec.stem)
def test_every_spec_of_the_project_fits_a_machine_of_eight_gigabytes(spec, monkeypatch):
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 1e9, "SC_PHYS_PAGES": 8}.__getitem__)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    runs_in_file(spec)
