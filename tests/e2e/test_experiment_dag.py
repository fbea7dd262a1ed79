"""The DAG `experiment` for real, by `make demo`: undisturbed, and with a controller that fails.

The undisturbed one is also seen from outside: what it tells OpenLineage, and the DAGs that are
scheduled on its tables.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from include.experiment.form import experiment_params
from include.experiment.params import run_from_params
from include.experiment.spec import RunSpec
from include.results.tables.catalogue import PUBLISHED
from include.runs.stages import run_all
from tests.conftest import REPOSITORY
from tests.e2e.dag_process import DEADLINE_S, done, measured

pytestmark = pytest.mark.airflow

PARAMS = {"experiment": "short", "duration_min": 30, "btu_min": 10, "seed": 3}
DEMO = REPOSITORY / ".ci" / "demo.py"
SECRET = "not-for-anybody"
TASKS = [
    "resolve_spec", "wait_for_turn", "provision_testbed", "deploy_images", "replay_arrivals",
    "control_window", "release_testbed", "build_tables", "check_tables", "publish_report",
]  # fmt: skip
CONSUMER = """
from airflow.sdk import Asset, dag, task

@dag(schedule=[Asset.ref(name="tidebench.cost")], is_paused_upon_creation=False)
def consumer():
    @task
    def read():
        pass
    read()

consumer()
"""
BREAKS = """
from include.controllers.fixed import Fixed


class Breaks(Fixed):
    \"\"\"Decides for 20 minutes.\"\"\"

    def decide(self, memory, seen):
        if seen.now_s >= 1200:
            raise ArithmeticError("nothing can be decided after 20 minutes")
        return super().decide(memory, seen)
"""
FILES = {"compliance.csv", "cost.csv", "scaling.csv", "report.html", "manifest.json"}


@dataclass
class Traced:
    """What the events of a task say, of all its copies."""

    states: list[str] = field(default_factory=list)
    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Demo:
    """What `make demo` has printed, the log of Airflow, and where the data is."""

    code: int
    output: str
    log: str
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / str(PARAMS["experiment"])


def make_demo(environment: dict[str, str], root: Path, controller: str = "btu") -> Demo:
    params = PARAMS | {"controller": controller}
    ended = subprocess.run(
        [sys.executable, DEMO, *(f"{name}={value}" for name, value in params.items())],
        env=environment | {"TIDEBENCH_DATA_ROOT": str(root)},
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    log = root / str(PARAMS["experiment"]) / "log" / "airflow.log"
    return Demo(ended.returncode, ended.stdout + ended.stderr, log.read_text(), root)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seen")


@pytest.fixture(scope="module")
def environment(airflow_environment: dict[str, str], root: Path) -> dict[str, str]:
    """The DAG as it is, one of somebody else's beside it, and events in a file."""
    dags = root / "dags"
    dags.mkdir()
    (dags / "experiment.py").symlink_to(REPOSITORY / "dags" / "experiment.py")
    (dags / "consumer.py").write_text(CONSUMER)
    transport = {"type": "file", "log_file_path": str(root / "events"), "append": True}
    results = {"conn_type": "sqlite", "host": str(root / "elsewhere.db"), "password": SECRET}
    ours = airflow_environment | {
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW_CONN_TIDEBENCH_RESULTS": json.dumps(results),
    }
    subprocess.run(["airflow", "dags", "reserialize"], env=ours, check=True, capture_output=True)
    return ours


@pytest.fixture(scope="module")
def demo(environment: dict[str, str], root: Path) -> Demo:
    """The undisturbed one."""
    made = make_demo(environment, root)
    assert made.code == 0, made.output
    return made


@pytest.fixture(scope="module")
def run() -> RunSpec:
    defaults = {name: keywords["default"] for name, keywords in experiment_params().items()}
    return run_from_params(defaults | PARAMS)


@pytest.fixture(scope="module")
def events(demo: Demo) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (demo.root / "events").read_text().splitlines()]


@pytest.fixture(scope="module")
def traced(events: list[dict[str, Any]]) -> dict[str, Traced]:
    traced: dict[str, Traced] = defaultdict(Traced)
    for event in events:
        _, _, task = event["job"]["name"].partition(".")
        traced[task].states.append(event["eventType"])
        traced[task].inputs |= set(names(event.get("inputs", ())))
        traced[task].outputs |= set(names(event.get("outputs", ())))
    return traced


def names(datasets: list[dict[str, Any]]) -> Iterator[str]:
    for dataset in datasets:
        yield f"{dataset['namespace']}:{dataset['name']}"


def test_make_demo_measures_in_order_publishes_releases_and_says_where(
    demo: Demo, run: RunSpec, tmp_path: Path
) -> None:
    assert str(demo.folder / "published" / "report.html") in demo.output
    assert sorted(done("control_window", demo.log)) == list(range(run.windows))
    windows = re.findall(r"window (\d+), minute", demo.output)
    assert windows == [f"{index:03d}" for index in range(run.windows)]  # in whatever order begun
    assert len(done("release_testbed", demo.log)) == 1
    run_all(run, tmp_path)
    undisturbed = measured(tmp_path / run.experiment)
    assert undisturbed
    assert measured(demo.folder) == undisturbed
    files = {file.name for file in (demo.folder / "published").iterdir() if file.stat().st_size}
    assert files >= FILES


def test_every_task_says_that_it_began_and_ended(traced: dict[str, Traced]) -> None:
    for task in TASKS:
        copies = 3 if task == "control_window" else 1
        states = traced[task].states
        assert states.count("COMPLETE") == copies, (task, states)
        assert states.count("START") >= copies, (task, states)
        assert "FAIL" not in states, task


def test_datasets_lead_from_the_testbed_to_the_results_database(
    traced: dict[str, Traced], demo: Demo, run: RunSpec
) -> None:
    base = f"file:{demo.folder}"
    home = f"{base}/runs/{run.run_id}"
    assert traced["provision_testbed"].outputs == {f"{home}/run.json"}
    assert traced["replay_arrivals"].inputs == {f"{home}/run.json"}
    assert traced["replay_arrivals"].outputs == {f"{home}/arrivals.csv"}
    assert traced["control_window"].inputs == {f"{home}/run.json", f"{home}/arrivals.csv"}

    measured = traced["control_window"].outputs
    assert {f"{base}/measurements/{table}" for table in ("queue", "decision", "lease")} <= measured
    assert traced["build_tables"].inputs == measured

    staged = traced["build_tables"].outputs
    assert {f"{base}/staged/{table}.parquet" for table in PUBLISHED} <= staged
    assert traced["check_tables"].inputs == traced["publish_report"].inputs == staged
    assert f"{base}/data_docs/verdict.json" in traced["check_tables"].outputs

    published = traced["publish_report"].outputs
    assert {f"{base}/published/{table}.parquet" for table in PUBLISHED} <= published
    assert f"{base}/published/report.html" in published
    database = f"sqlite://{demo.root / 'elsewhere.db'}:main."
    assert {f"{database}{table}" for table in PUBLISHED} <= published
    with closing(sqlite3.connect(demo.root / "elsewhere.db")) as results:
        there = {name for (name,) in results.execute("SELECT name FROM sqlite_master")}
    assert {name.removeprefix(database) for name in published if name.startswith(database)} <= there

    for task in ("resolve_spec", "wait_for_turn", "release_testbed"):
        assert traced[task].outputs == set()


def test_columns_stand_beside_tables(events: list[dict[str, Any]]) -> None:
    columns = {
        Path(dataset["name"]).name: {
            field["name"] for field in dataset["facets"]["schema"]["fields"]
        }
        for event in events
        for dataset in event.get("outputs", ())
        if "schema" in dataset.get("facets", {})
    }
    assert {"run", "price_book", "resource_cost"} <= columns["cost.parquet"]
    assert columns["main.cost"] == columns["cost.parquet"]


def test_no_secret_is_in_an_event(events: list[dict[str, Any]]) -> None:
    assert events
    assert SECRET not in json.dumps(events)


def test_who_is_scheduled_on_a_table_is_told_which_experiment_it_is_about(
    demo: Demo, environment: dict[str, str]
) -> None:
    with closing(sqlite3.connect(Path(environment["AIRFLOW_HOME"]) / "airflow.db")) as airflow:
        rows = airflow.execute(
            "SELECT asset.name, asset.uri, asset_event.extra FROM asset_event "
            "JOIN asset ON asset.id = asset_event.asset_id "
            "WHERE asset_event.source_dag_id = 'experiment'"
        ).fetchall()
        queued = airflow.execute(
            "SELECT count(*) FROM asset_dag_run_queue WHERE target_dag_id = 'consumer'"
        ).fetchone()
    assets = {name: (uri, json.loads(extra)) for name, uri, extra in rows}
    assert set(assets) == {f"tidebench.{table}" for table in PUBLISHED}
    uri, extra = assets["tidebench.cost"]
    assert uri == "x-tidebench://published/cost"
    assert extra["experiment"] == demo.folder.name
    assert extra["path"] == str(demo.folder / "published" / "cost.parquet")
    assert Path(extra["path"]).is_file()
    assert queued == (1,)


def test_a_task_that_fails_for_good_releases_the_testbed_and_make_demo_says_why(
    airflow_environment: dict[str, str], data_root: Path, tmp_path: Path
) -> None:
    announce(tmp_path, "breaks", BREAKS)
    path = os.pathsep.join([airflow_environment["PYTHONPATH"], str(tmp_path)])
    made = make_demo(airflow_environment | {"PYTHONPATH": path}, data_root, controller="breaks")
    assert made.code == 1, made.output
    reason = made.output.split("The run failed:")[1].split("Everything that Airflow said")[0]
    assert "nothing can be decided after 20 minutes" in reason
    commits = made.folder.glob("runs/*/commits/*.json")
    assert sorted(commit.stem for commit in commits) == ["000", "001"]
    assert done("release_testbed", made.log) == [-1]
    assert done("build_tables", made.log) == []
    assert not (made.folder / "published").exists()


def announce(folder: Path, name: str, module: str) -> None:
    """Put an installed package there, of one module with one controller of its name."""
    (folder / f"{name}.py").write_text(module)
    metadata = folder / f"{name}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        f"[tidebench.controllers]\n{name} = {name}:{name.title()}\n"
    )
