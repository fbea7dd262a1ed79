"""A spec asks for no run twice, also not for one that tables would take for another."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from include.experiment.matrix import runs_in_file
from include.experiment.spec import parse_spec
from tests.problems import problems_told

MINE = {"name": "mine", "controllers": "fixed", "patterns": "constant", "duration_min": 10}
JOB = {
    "name": "job",
    "emission_period_s": 1,
    "sources": {"s": {"label": "s", "items_per_level": 2}},
    "operators": {
        "a": {"label": "a", "slo_ms": 5, "service_ms": 5, "cpu_shares": 9, "memory_mb": 9}
    },
    "edges": [{"from": "s", "to": "a"}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    constant = {"name": "constant", "level": {"sweep": [1, 2]}}
    swept = {"patterns": [constant], "btus_min": [1, 2, 5]}
    twice = {"patterns": ["constant", "constant"]}
    (tmp_path / "job.yaml").write_text(json.dumps(JOB))
    (tmp_path / "other.yaml").write_text(json.dumps(JOB))
    (tmp_path / "swept.yaml").write_text(json.dumps(JOB | {"run_with": swept}))
    (tmp_path / "twice.yaml").write_text(json.dumps(JOB | {"run_with": twice}))
    (tmp_path / "rate.csv").write_text("time_s,level\n0,1\n60,2\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "rate.csv").write_text("time_s,level\n0,1\n60,3\n")
    return tmp_path


def asked(folder: Path, **fields: Any) -> Path:
    path = folder / "spec.yaml"
    path.write_text(json.dumps({name: value for name, value in fields.items() if value}))
    return path


def trace(path: str) -> dict[str, str]:
    return {"name": "trace", "path": path}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"patterns": [trace("rate.csv"), trace("./rate.csv")]}, "are the same run; list it once"),
        ({"patterns": [trace("rate.csv"), trace("other/rate.csv")]}, "other/rate.csv'}); list"),
        ({"topology": ["job.yaml", "./job.yaml"]}, "are the same run; list it once"),
        ({"topology": "twice.yaml", "patterns": None}, "are the same run; list it once"),
        (
            {"controllers": [{"name": "tide", "care": 2}, {"name": "tide", "care": 2.0}]},
            "to tables ({'care': 2} and {'care': 2.0}); list it once",
        ),
        (
            {"controllers": ["tide", {"name": "tide", "care": 1.0}]},
            "to tables ({} and {'care': 1.0}); list it once",
        ),
    ],
)
def test_what_is_one_run_to_tables_is_refused(
    changes: dict[str, Any], part: str, folder: Path
) -> None:
    (problem,) = problems_told(runs_in_file, asked(folder, **MINE | changes))
    assert part in problem


def test_two_topologies_of_one_name_are_refused(folder: Path) -> None:
    spec = asked(folder, **MINE | {"topology": ["job.yaml", "other.yaml"]})
    (problem,) = problems_told(runs_in_file, spec)
    job, other = folder / "job.yaml", folder / "other.yaml"
    assert problem == f"topology: {job} and {other} are both called job; rename one"


def test_axes_of_a_topology_count(folder: Path) -> None:
    """Two levels with three BTUs each: 1,666 seeds are fewer than 10,000 runs, 1,667 are not."""
    fields = MINE | {"topology": "swept.yaml", "patterns": None}
    assert len(runs_in_file(asked(folder, **fields, seeds="1-1666"))) == 9996
    (problem,) = problems_told(runs_in_file, asked(folder, **fields, seeds="1-1667"))
    assert "more than the 10000 runs" in problem
    assert "run_with" in problem


def test_two_runs_whose_ids_are_alike_by_chance_are_refused(tmp_path: Path) -> None:
    """They would share a folder, and the second fail for inputs that had changed."""
    fixed = {"name": "fixed", "interval_s": 1.0}
    (point,) = parse_spec(MINE | {"controllers": fixed}, source="a test").points()
    first: dict[str, float] = {}
    for number in count(60):
        every_s = float(number)
        run_id = replace(point, controller_options={"interval_s": every_s}).run_id
        if (other_s := first.setdefault(run_id, every_s)) != every_s:
            break
    sweep = {"name": "fixed", "interval_s": {"sweep": [other_s, 15.0, every_s]}}
    (problem,) = problems_told(runs_in_file, asked(tmp_path, **MINE | {"controllers": sweep}))
    assert problem == (
        f"two runs have the id {run_id} by chance ({{'interval_s': {other_s}}} and "
        f"{{'interval_s': {every_s}}}); put one of them into an experiment of another name"
    )
