"""Seen from outside: what a DAG run tells OpenLineage, and the DAGs that are scheduled on it."""

from __future__ import annotations

import json
import os
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

from include.results.tables.catalogue import PUBLISHED
from tests.conftest import REPOSITORY
from tests.e2e.dag_process import started

pytestmark = pytest.mark.airflow

PARAMS = {"experiment": "seen", "duration_min": 20, "btu_min": 10, "seed": 3}
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


@dataclass
class Traced:
    """What the events of a task say, of all its copies."""

    states: list[str] = field(default_factory=list)
    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seen")


@pytest.fixture(scope="module")
def environment(airflow_environment: dict[str, str], folder: Path) -> dict[str, str]:
    """The DAG as it is, one of somebody else's beside it, and events in a file."""
    dags = folder / "dags"
    dags.mkdir()
    (dags / "experiment.py").symlink_to(REPOSITORY / "dags" / "experiment.py")
    (dags / "consumer.py").write_text(CONSUMER)
    transport = {"type": "file", "log_file_path": str(folder / "events"), "append": True}
    results = {"conn_type": "sqlite", "host": str(folder / "results.db"), "password": SECRET}
    ours = airflow_environment | {
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW_CONN_TIDEBENCH_RESULTS": json.dumps(results),
        "TIDEBENCH_DATA_ROOT": str(folder / "data"),
    }
    subprocess.run(["airflow", "dags", "reserialize"], env=ours, check=True, capture_output=True)
    return ours


@pytest.fixture(scope="module")
def events(environment: dict[str, str], folder: Path) -> list[dict[str, Any]]:
    """Of one DAG run."""
    with started(environment, PARAMS, folder / "log") as dag:
        assert dag.finish() == 0, dag.tail()
    return [json.loads(line) for line in (folder / "events").read_text().splitlines()]


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


def test_every_task_says_that_it_began_and_ended(traced: dict[str, Traced]) -> None:
    for task in TASKS:
        copies = 2 if task == "control_window" else 1
        states = traced[task].states
        assert states.count("COMPLETE") == copies, (task, states)
        assert states.count("START") >= copies, (task, states)
        assert "FAIL" not in states, task


def test_datasets_lead_from_the_testbed_to_the_results_database(
    traced: dict[str, Traced], folder: Path
) -> None:
    base = f"file:{folder / 'data' / 'seen'}"
    (run,) = (folder / "data" / "seen" / "runs").iterdir()
    home = f"{base}/runs/{run.name}"
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
    database = f"sqlite://{folder / 'results.db'}:main."
    assert {f"{database}{table}" for table in PUBLISHED} <= published
    with closing(sqlite3.connect(folder / "results.db")) as results:
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
    events: list[dict[str, Any]], environment: dict[str, str], folder: Path
) -> None:
    assert events  # the DAG run is over
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
    assert extra["experiment"] == "seen"
    assert extra["path"] == str(folder / "data" / "seen" / "published" / "cost.parquet")
    assert Path(extra["path"]).is_file()
    assert queued == (1,)


@pytest.mark.parametrize(
    ("variables", "says"),
    [({}, "True"), ({"OPENLINEAGE_URL": "http://127.0.0.1:9"}, "False")],
)
def test_nothing_is_sent_unless_a_transport_is_configured(
    airflow_environment: dict[str, str], variables: dict[str, str], says: str
) -> None:
    bare = {name: value for name, value in os.environ.items() if "OPENLINEAGE" not in name}
    code = "from airflow.providers.openlineage.conf import is_disabled; print(is_disabled())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=bare | airflow_environment | variables,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split()[-1] == says
