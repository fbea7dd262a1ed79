"""The commands of README.md and docs/, at a small size: each ends well and leaves what it says.

`make` targets are run by what their recipe calls, so that nothing is set up once more.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from include.controllers import CONTROLLERS
from include.controllers.base import Group
from tests.docs.pages import REPOSITORY, codes
from tests.docs.test_pages import of_adding, write

pytestmark = pytest.mark.long

MINUTES = 20
"""For one command, on a machine that others use as well."""


def cli(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """What `tidebench` prints there; fails with all of it when it fails."""
    return python(folder, "-m", "include.cli", *arguments, variables=variables)


def python(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """The same for any program."""
    environment = dict(os.environ) | {
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "plugins")]),
        "TIDEBENCH_DATA_ROOT": str(folder / "var"),
        **(variables or {}),
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=MINUTES * 60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A reader's folder with the files of the pages, the experiment cut to two short runs."""
    of_adding(tmp_path)
    (tmp_path / "load.csv").write_text("time_s,level\n0,3\n300,9\n")
    spec = write(tmp_path, "mine.yaml", "README.md: name")
    values = yaml.safe_load(spec.read_text())
    cut = {"controllers": values["controllers"][:2], "btus_min": [10], "seeds": [1]}
    spec.write_text(yaml.safe_dump(values | cut | {"duration_min": 10}))
    return tmp_path


def test_check_says_what_would_run(mine: Path) -> None:
    assert cli(mine, "check", "mine.yaml").count("10 min, 1 window") == 2


@pytest.mark.spark
def test_sweep_report_figure_and_crate_of_an_experiment_of_ones_own(mine: Path) -> None:
    """Without `--on` it is run further below."""
    cli(mine, "run", "mine.yaml", "--on", "local[2]")
    assert (mine / "var" / "mine" / "sweep_status.csv").read_text().count("measured") == 2
    assert "published/report.html" in cli(mine, "report", "var/mine")
    cli(mine, "figure", "var/mine", "--out", "mine.svg")
    assert (mine / "mine.svg").read_text().count("<svg") == 1
    assert "mine.zip, " in cli(mine, "crate", "var/mine", "--out", "mine.zip")


def test_tide_beside_all_others_for_ten_minutes(tmp_path: Path) -> None:
    """Of its hundreds of runs one of each controller, cut; `report` is that of any experiment."""
    specs = REPOSITORY / "include" / "experiment" / "specs"
    spec = yaml.safe_load((specs / "tide_care.yaml").read_text())
    small = tmp_path / "tide_care.yaml"
    cut = {"patterns": "random_walk", "seeds": 61, "duration_min": 10}
    small.write_text(yaml.safe_dump(spec | cut))
    lines = cli(tmp_path, "run", str(small))
    names = {one if isinstance(one, str) else one["name"] for one in spec["controllers"]}
    assert {name for name, one in CONTROLLERS.items() if one.group is Group.IN_USE_TODAY} <= names
    assert all(f"] {one}-" in lines for one in names)


def test_the_demo_of_the_command_line(tmp_path: Path) -> None:
    """Its report is that of any experiment, such as the one above."""
    spec = REPOSITORY / "include" / "experiment" / "specs" / "demo.yaml"
    demo = tmp_path / "var" / "demo"
    said = cli(tmp_path, "run", str(spec))
    assert f"tidebench report {demo}" in said
    (printed,) = (
        one.text for one in codes() if one.text.startswith("Compliance, percent of items")
    )
    shares = re.findall(
        r"^  (?:Real-time|Near real-time|Relaxed) +([\d.]+) ", printed, re.MULTILINE
    )
    assert f"compliance {' / '.join(shares)} %" in said, "README.md shows another run"
    (shown,) = (code.text for code in codes() if code.text.startswith("var/demo/measurements:"))
    left = [*demo.glob("measurements/*"), *demo.glob("runs/*/*"), *demo.glob("runs/*")]
    assert {path.name for path in left} == {
        Path(word).name
        for word in shown.replace(":", "").split()
        if word != "var/demo/measurements"
    }
    assert cli(tmp_path, "bound", "var/demo") in [code.text for code in codes()]
    assert (demo / "bounds.json").is_file()


def test_bound_says_what_the_page_shows(tmp_path: Path) -> None:
    said = cli(tmp_path, "bound", str(REPOSITORY / "include/experiment/specs/demo.yaml"))
    assert said in [code.text for code in codes()]


def test_reap_where_nothing_is_leased(tmp_path: Path) -> None:
    cli(tmp_path, "reap", "--testbed", "docker", variables={"TIDEBENCH_LIVE_STATE": str(tmp_path)})


def test_make_demo_leaves_wrong_parameters_to_the_dag_to_refuse(tmp_path: Path) -> None:
    """It looks for an older run of theirs first; tests/e2e/test_experiment_dag.py runs it."""
    demo = runpy.run_path(str(REPOSITORY / ".ci" / "demo.py"))
    demo["forget_other_inputs"]({"experiment": "other", "controller": "nobody"}, tmp_path)
    assert not list(tmp_path.iterdir())
    problems = "the params: 1 problem\n  - unknown controller 'nobody'. Known: btu"
    log = f"airflow.sdk.exceptions.AirflowFailException: {problems}\n2026-11-22T12:39:57.5Z [info]"
    assert [found[1] for found in demo["ERROR"].finditer(log)] == [problems]
