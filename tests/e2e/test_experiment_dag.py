"""The DAG `experiment` for real: in a process of its own, killed, and damaged."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from include.control.stages import run_all
from include.experiment.params import run_from_params
from include.experiment.spec import RunSpec
from tests.e2e.dag_process import DagProcess, measured, started

pytestmark = pytest.mark.airflow

PARAMS = {"experiment": "short", "duration_min": 40, "btu_min": 10, "seed": 3}
PUBLISHED = {"compliance.csv", "cost.csv", "scaling.csv", "report.html", "manifest.json"}

Start = Callable[..., AbstractContextManager[DagProcess]]


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


@pytest.fixture
def start(airflow_environment: dict[str, str], tmp_path: Path) -> Start:
    """Start the DAG on a data root, with further environment variables."""

    def start_on(root: Path, **variables: str) -> AbstractContextManager[DagProcess]:
        count = len(list(tmp_path.glob("*.log")))
        environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(root)} | variables
        return started(environment, PARAMS, tmp_path / f"{count}.log")

    return start_on


def assert_published(folder: Path) -> None:
    files = {file.name for file in (folder / "published").iterdir() if file.stat().st_size}
    assert files >= PUBLISHED


def test_a_run_measures_in_order_publishes_and_releases(
    start: Start, run: RunSpec, undisturbed: dict[str, str], data_root: Path
) -> None:
    database = data_root / "elsewhere.db"
    connection = f'{{"conn_type": "sqlite", "host": "{database}"}}'
    with start(data_root, AIRFLOW_CONN_TIDEBENCH_RESULTS=connection) as dag:
        assert dag.finish() == 0, dag.tail()

    last = {index: turn for turn, index in enumerate(dag.done("control_window"))}
    assert sorted(last, key=last.__getitem__) == list(range(run.windows))  # early ones made way
    assert len(dag.done("release_testbed")) == 1
    assert measured(data_root / run.experiment) == undisturbed
    assert_published(data_root / run.experiment)
    with closing(sqlite3.connect(database)) as results:
        assert results.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0


def test_a_run_killed_in_many_tasks_measures_the_same_bytes(
    start: Start, run: RunSpec, undisturbed: dict[str, str], data_root: Path
) -> None:
    measurements = data_root / run.experiment / "measurements"

    def window_is_half_written() -> bool:
        return any(measurements.rglob("part-001.parquet"))

    kills: list[dict[str, Any]] = [
        {"task": "provision_testbed"},
        {"task": "deploy_images", "after_s": 0.1},
        {"task": "control_window", "map_index": 1, "once": window_is_half_written},
        {"task": "build_tables", "after_s": 4.0},
        {"task": "publish_report", "after_s": 0.1},
    ]
    for kill in kills:
        with start(data_root) as dag:
            dag.kill_in(**kill)
    with start(data_root) as dag:
        assert dag.finish() == 0, dag.tail()

    assert measured(data_root / run.experiment) == undisturbed
    assert_published(data_root / run.experiment)


def test_a_task_that_fails_for_good_releases_the_testbed_and_fails_the_run(
    start: Start, run: RunSpec, data_root: Path
) -> None:
    run_all(run, data_root)
    home = data_root / run.experiment / "runs" / run.run_id
    (home / "commits" / "002.json").unlink()
    snapshot = home / "snapshots" / "002.npz"
    snapshot.write_bytes(snapshot.read_bytes()[:100])

    with start(data_root) as dag:
        assert dag.finish() != 0, dag.tail()

    assert dag.done("release_testbed") == [-1]
    assert "002.npz" in dag.said
    assert dag.done("build_tables") == []
    assert not (data_root / run.experiment / "published").exists()
    shutil.rmtree(home)
