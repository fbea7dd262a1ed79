"""A controller from a folder of somebody's own: no file of this repository is touched.

The class is that of docs/adding.md. By the command line from that folder, by a DAG run, and on a
worker of a Spark cluster, which gets it from the driver and knows neither folder nor repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.experiment.matrix import runs_in_file
from include.results.tables.staged import read_table
from include.runs.stages import store_of
from tests.bench.spark_cluster import a_cluster
from tests.docs.pages import REPOSITORY, blocks
from tests.e2e.dag_process import started

OWN = "my_package.module:Longest"
SPEC = {"name": "own", "controllers": [OWN, "btu"], "patterns": "stepwise", "btus_min": [5],
        "seeds": [1], "duration_min": 10}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a package and a spec, on the path of this process."""
    home = tmp_path / "home"
    package = home / "my_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (longest,) = [block for block in blocks("python") if block.text.startswith("# longest.py")]
    (package / "module.py").write_text(longest.text)
    (home / "mine.yaml").write_text(json.dumps(SPEC))
    monkeypatch.syspath_prepend(str(home))
    return home


def tidebench(folder: Path, *arguments: str) -> str:
    """What the installed command prints in that folder, which alone has the package."""
    command = "import sys; from include.cli import main; sys.argv[0] = 'tidebench'; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", command, *arguments], cwd=folder, text=True, timeout=600,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.spark
def test_by_the_command_line_and_an_edit_measures_only_its_runs_again(folder: Path) -> None:
    root = folder / "var"
    assert "Longest-stepwise-btu5-s1-" in tidebench(folder, "check", "mine.yaml")
    tidebench(folder, "run", "mine.yaml", "--root", str(root))
    tidebench(folder, "report", str(root / "own"))
    rows = read_table(root / "own" / "published" / "runs.parquet")
    assert {row["controller"] for row in rows} == {OWN, "btu"}

    module = folder / "my_package" / "module.py"
    module.write_text(module.read_text().replace("whose queue is long", "that has a long queue"))
    again = tidebench(folder, "run", "mine.yaml", "--root", str(root)).splitlines()
    (btu,) = [line for line in again if "] btu-" in line]
    (progress_line,) = [line for line in again if "] Longest-" in line]
    assert btu.endswith("reused")
    assert progress_line.endswith("of other code")


@pytest.mark.airflow
def test_by_a_dag_run(
    folder: Path, airflow_environment: dict[str, str], data_root: Path, tmp_path: Path
) -> None:
    path = os.pathsep.join([str(folder), airflow_environment["PYTHONPATH"]])
    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(data_root), "PYTHONPATH": path}
    params = {"spec": str(folder / "mine.yaml")}
    with started(environment, params, tmp_path / "log", "experiment_batch") as dag:
        assert dag.finish() == 0, dag.tail()
    rows = read_table(data_root / "own" / "published" / "runs.parquet")
    assert {row["controller"] for row in rows} == {OWN, "btu"}


@pytest.mark.spark
def test_on_a_worker_of_a_cluster(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    with a_cluster(tmp_path / "cluster", workers=1) as cluster:
        tidebench(folder, "run", "mine.yaml", "--root", str(root), "--on", cluster.master)
        unpacked = "app-*/*/tidebench/my_package/module.py"
        assert list(cluster.work_of(0).glob(unpacked))
    for point in runs_in_file(folder / "mine.yaml"):
        assert store_of(point, root).manifest.is_file()
