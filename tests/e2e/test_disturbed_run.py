"""The DAG `experiment` while everything disturbs it: killed, and the results database is down.

Errors say the most, so secrets are planted around it; and a text of its user looks like a template.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from include.experiment.form import experiment_params
from include.experiment.params import run_from_params
from include.runs.stages import run_all
from include.studies.publish import publish_experiment
from tests.e2e.dag_process import DagProcess, measured, started

pytestmark = [pytest.mark.airflow, pytest.mark.nightly]

SECRETS = {
    "connection": "planted-connection-4c81",
    "environment": "planted-environment-90be",
    "extra": "planted-extra-77d3",
    "fernet": "cGxhbnRlZC1mZXJuZXQta2V5LW9mLTMyLWJ5dGVzISE=",
    "jwt": "planted-jwt-secret-of-more-than-thirty-two-bytes-12ab",
}
RESULTS = {  # nobody answers on port 1
    "conn_type": "postgres",
    "host": "127.0.0.1",
    "port": 1,
    "schema": "results",
    "login": "reporter",
    "password": SECRETS["connection"],
    "extra": {"sslpassword": SECRETS["extra"]},
}
PLANTED = {
    "AIRFLOW_CONN_TIDEBENCH_RESULTS": json.dumps(RESULTS),
    "AIRFLOW__CORE__FERNET_KEY": SECRETS["fernet"],
    "AIRFLOW__API_AUTH__JWT_SECRET": SECRETS["jwt"],
    "OS_PASSWORD": SECRETS["environment"],
    "POSTGRES_PASSWORD": SECRETS["environment"],
}
TEMPLATE = "{{ 7 * 7 }}{{ conn.tidebench_results.password }}.csv"
PARAMS = {"experiment": "planted", "pattern": "trace", "duration_min": 30, "btu_min": 10}


@pytest.fixture(scope="module")
def disturbed(
    airflow_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[DagProcess, Path]:
    """A run that is killed in a window and in Spark, and cannot be published then.

    It is killed at every file in tests/unit/test_stages.py, a publication in
    tests/unit/test_reports_publish.py.
    """
    root = tmp_path_factory.mktemp("data")
    (root / TEMPLATE).write_text("time_s,level\n0,2\n300,4\n")
    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(root)} | PLANTED
    params = PARAMS | {"trace": str(root / TEMPLATE)}

    def a_window_is_committed() -> bool:
        return any((root / "planted" / "runs").rglob("commits/*.json"))

    kills: list[dict[str, Any]] = [
        {"task": "control_window", "once": a_window_is_committed},
        {"task": "build_tables", "after_s": 4.0},
    ]
    for number, kill in enumerate(kills):
        with started(environment, params, root / f"killed-{number}.log") as dag:
            dag.kill_in(**kill)
    with started(environment, params, root / "console.log") as dag:
        dag.wait_until(lambda: bool(dag.done("publish_report")))  # the first of three tries
    return dag, root


def test_a_run_killed_again_and_again_measures_the_same_bytes_and_can_be_published(
    disturbed: tuple[DagProcess, Path], tmp_path: Path
) -> None:
    dag, root = disturbed
    defaults = {name: keywords["default"] for name, keywords in experiment_params().items()}
    run = run_from_params(defaults | PARAMS | {"trace": str(root / TEMPLATE)})
    run_all(run, tmp_path / "undisturbed")
    undisturbed = measured(tmp_path / "undisturbed" / "planted")
    assert len(undisturbed) > 0
    assert measured(root / "planted") == undisturbed
    assert dag.done("release_testbed") == [-1], dag.tail()

    assert not (root / "planted" / "published").exists()
    folder = shutil.copytree(root / "planted", tmp_path / "planted")
    publish_experiment(folder, f"sqlite:///{tmp_path / 'results.db'}")
    files = {file.name for file in (folder / "published").iterdir() if file.stat().st_size}
    assert files >= {"compliance.csv", "cost.csv", "scaling.csv", "report.html", "manifest.json"}


def test_no_secret_is_in_anything_that_a_run_leaves(
    disturbed: tuple[DagProcess, Path], airflow_environment: dict[str, str]
) -> None:
    """Files, manifests, logs, also of what was killed; XComs, templates and log of the database."""
    dag, root = disturbed
    assert "results database" in dag.output, dag.tail()  # it did come to the failure
    home = Path(airflow_environment["AIRFLOW_HOME"])
    files = [path for folder in (root, home) for path in folder.rglob("*") if path.is_file()]
    assert {"manifest.json", "report.html", "airflow.db"} - {path.name for path in files} <= {
        "report.html"  # not published
    }
    for path in files:
        content = path.read_bytes()
        for name, secret in SECRETS.items():
            assert secret.encode() not in content, f"{name} is in {path}"


def test_the_text_of_a_user_is_no_template(disturbed: tuple[DagProcess, Path]) -> None:
    """A trace whose name is one was read under that name, and is stored under it."""
    _, root = disturbed
    (stored,) = root.glob("planted/runs/*/run.json")
    assert json.dumps(os.fspath(root / TEMPLATE))[1:-1] in stored.read_text()
    assert list(root.glob("planted/runs/*/manifest.json"))
