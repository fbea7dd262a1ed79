"""The commands of README.md and docs/, at a small size: each ends well and leaves what it says.

`make` targets are run by what their recipe calls, so that nothing is set up once more. Commands run
in this process: tests/e2e/test_own_controller.py starts the installed one.
"""

from __future__ import annotations

import re
import runpy
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest

from include.controllers import CONTROLLERS
from include.controllers.base import Group
from include.runs.monitoring.collector import RunsCollector
from tests.command_line import said
from tests.docs.pages import REPOSITORY, codes
from tests.docs.test_pages import of_adding, write

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In a reader's folder, where results go as well; signals mean what they did before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEBENCH_DATA_ROOT", str(tmp_path / "var"))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A reader's folder with the files of the pages, the experiment cut to two short runs."""
    of_adding(tmp_path)
    (tmp_path / "load.csv").write_text("time_s,level\n0,3\n300,9\n")
    spec = write(tmp_path, "mine.yaml", "README.md: mine")
    values = yaml.safe_load(spec.read_text())
    cut = {"controllers": values["controllers"][:2], "btus_min": [10], "seeds": [1]}
    spec.write_text(yaml.safe_dump(values | cut | {"duration_min": 10}))
    return tmp_path


def test_check_says_what_would_run(mine: Path) -> None:
    assert said("check", "mine.yaml").count("10 min, 1 window") == 2


def test_tide_care_is_tide_beside_all_that_are_in_use_today() -> None:
    """tests/contract/test_every_controller.py has each of them decide."""
    printed = said("check", "tide_care")
    names = [name for name, one in CONTROLLERS.items() if one.group is Group.IN_USE_TODAY]
    assert all(re.search(rf"^{name}-", printed, re.MULTILINE) for name in ["tide", *names])


def test_the_demo_of_the_command_line(tmp_path: Path) -> None:
    """Figure: tests/unit/test_reports_front.py; crate: tests/unit/test_reports_crate.py."""
    spec = REPOSITORY / "include" / "experiment" / "specs" / "demo.yaml"
    demo = tmp_path / "var" / "demo"
    printed = said("run", spec)
    assert f"tidebench report {demo}" in printed
    (table,) = (one.text for one in codes() if one.text.startswith("Compliance, percent of items"))
    shares = re.findall(r"^  (?:Real-time|Near real-time|Relaxed) +([\d.]+) ", table, re.MULTILINE)
    assert f"compliance {' / '.join(shares)} %" in printed, "README.md shows another run"
    assert ", 1 item waiting  " in printed
    (shown,) = (code.text for code in codes() if code.text.startswith("var/demo/measurements:"))
    left = [*demo.glob("measurements/*"), *demo.glob("runs/*/*"), *demo.glob("runs/*")]
    assert {path.name for path in left} == {
        Path(word).name
        for word in shown.replace(":", "").split()
        if word != "var/demo/measurements"
    }
    assert said("bound", "var/demo") in [code.text for code in codes()]
    assert (demo / "bounds.json").is_file()
    (shown,) = (code.text for code in codes() if code.text.startswith("run  "))
    parts = said("bound", "var/demo", "--no-floor", "--parts").splitlines()
    assert {*map(after_its_first_word, shown.splitlines()[1:])} <= {
        *map(after_its_first_word, parts)
    }
    (shown,) = (code.text for code in codes() if code.text.startswith("tidebench_instances{"))
    served = generate_latest(RunsCollector(tmp_path / "var", 3600, 1)).decode().splitlines()
    assert {*shown.splitlines()[:-1]} <= {*served}, "docs/monitoring.md shows another run"


def after_its_first_word(line: str) -> str:
    """With single spaces: a page cuts the name of a run."""
    return " ".join(line.split()[1:])


def test_bound_says_what_the_page_shows() -> None:
    printed = said("bound", REPOSITORY / "include/experiment/specs/demo.yaml")
    assert printed in [code.text for code in codes()]


def test_reap_where_nothing_is_leased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    said("reap", "--testbed", "docker")


def test_make_demo_leaves_wrong_parameters_to_the_dag_to_refuse(tmp_path: Path) -> None:
    """It looks for an older run of theirs first; tests/e2e/test_experiment_dag.py runs it."""
    demo = runpy.run_path(str(REPOSITORY / ".ci" / "demo.py"))
    demo["forget_other_inputs"]({"experiment": "other", "controller": "nobody"}, tmp_path)
    assert not list(tmp_path.iterdir())
    problems = "the params: 1 problem\n  - unknown controller 'nobody'. Known: btu"
    log = f"airflow.sdk.exceptions.AirflowFailException: {problems}\n2026-11-22T12:39:57.5Z [info]"
    assert [found[1] for found in demo["ERROR"].finditer(log)] == [problems]
