"""The DAG `experiment` while the results database is down.

Errors say the most, so secrets are planted around it; and a text of its user looks like a template.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.e2e.dag_process import DagProcess, started

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
    """A run that cannot be published."""
    root = tmp_path_factory.mktemp("data")
    (root / TEMPLATE).write_text("time_s,level\n0,2\n300,4\n")
    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(root)} | PLANTED
    params = PARAMS | {"trace": str(root / TEMPLATE)}
    with started(environment, params, root / "console.log") as dag:
        dag.wait_until(lambda: bool(dag.done("publish_report")))  # the first of three tries
    return dag, root


def test_no_secret_is_in_anything_that_a_run_leaves(
    disturbed: tuple[DagProcess, Path], airflow_environment: dict[str, str]
) -> None:
    """Files, manifests, logs, also of what failed; XComs, templates and log of the database."""
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
