"""The DAG `experiment` for real, by `make demo`: undisturbed, and with a controller that fails."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from include.experiment.params import run_from_params
from include.experiment.spec import RunSpec
from include.runs.stages import run_all
from tests.e2e.dag_process import DEADLINE_S, done, measured

pytestmark = pytest.mark.airflow

PARAMS = {"experiment": "short", "duration_min": 40, "btu_min": 10, "seed": 3}
DEMO = Path(__file__).parents[2] / ".ci" / "demo.py"
BREAKS = """
from include.controllers.fixed import Fixed


class Breaks(Fixed):
    \"\"\"Decides for 20 minutes.\"\"\"

    def decide(self, memory, seen):
        if seen.now_s >= 1200:
            raise ArithmeticError("nothing can be decided after 20 minutes")
        return super().decide(memory, seen)
"""
PUBLISHED = {"compliance.csv", "cost.csv", "scaling.csv", "report.html", "manifest.json"}


@pytest.fixture(scope="module")
def run() -> RunSpec:
    from include.experiment.form import experiment_params

    defaults = {name: keywords["default"] for name, keywords in experiment_params().items()}
    return run_from_params(defaults | PARAMS)


@pytest.fixture(scope="module")
def undisturbed(run: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the stages measure in this process, without Airflow."""
    root = tmp_path_factory.mktemp("undisturbed")
    run_all(run, root)
    hashes = measured(root / run.experiment)
    assert hashes
    return hashes


def make_demo(
    environment: dict[str, str], root: Path, controller: str = "btu", **variables: str
) -> tuple[int, str, str]:
    """Its exit code, what it prints, and Airflow's log."""
    params = PARAMS | {"controller": controller}
    ended = subprocess.run(
        [sys.executable, DEMO, *(f"{name}={value}" for name, value in params.items())],
        env=environment | {"TIDEBENCH_DATA_ROOT": str(root)} | variables,
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    log = root / PARAMS["experiment"] / "log" / "airflow.log"
    return ended.returncode, ended.stdout + ended.stderr, log.read_text()


def test_make_demo_measures_in_order_publishes_releases_and_says_where(
    airflow_environment: dict[str, str],
    run: RunSpec,
    undisturbed: dict[str, str],
    data_root: Path,
) -> None:
    database = data_root / "elsewhere.db"
    connection = f'{{"conn_type": "sqlite", "host": "{database}"}}'
    code, output, log = make_demo(
        airflow_environment, data_root, AIRFLOW_CONN_TIDEBENCH_RESULTS=connection
    )
    folder = data_root / run.experiment
    assert code == 0, output
    assert str(folder / "published" / "report.html") in output

    last = {index: turn for turn, index in enumerate(done("control_window", log))}
    assert sorted(last, key=last.__getitem__) == list(range(run.windows))  # early ones made way
    assert len(done("release_testbed", log)) == 1
    assert measured(folder) == undisturbed
    published = {file.name for file in (folder / "published").iterdir() if file.stat().st_size}
    assert published >= PUBLISHED
    with closing(sqlite3.connect(database)) as results:
        assert results.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0


def test_a_task_that_fails_for_good_releases_the_testbed_and_make_demo_says_why(
    airflow_environment: dict[str, str], data_root: Path, tmp_path: Path
) -> None:
    announce(tmp_path, "breaks", BREAKS)
    path = os.pathsep.join([airflow_environment["PYTHONPATH"], str(tmp_path)])
    code, output, log = make_demo(
        airflow_environment, data_root, controller="breaks", PYTHONPATH=path
    )
    assert code == 1, output
    reason = output.split("The run failed:")[1].split("Everything that Airflow said")[0]
    assert "nothing can be decided after 20 minutes" in reason
    commits = (data_root / PARAMS["experiment"]).glob("runs/*/commits/*.json")
    assert sorted(commit.stem for commit in commits) == ["000", "001"]
    assert done("release_testbed", log) == [-1]
    assert done("build_tables", log) == []
    assert not (data_root / PARAMS["experiment"] / "published").exists()


def announce(folder: Path, name: str, module: str) -> None:
    """Put an installed package there, of one module with one controller of its name."""
    (folder / f"{name}.py").write_text(module)
    metadata = folder / f"{name}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        f"[tidebench.controllers]\n{name} = {name}:{name.title()}\n"
    )
