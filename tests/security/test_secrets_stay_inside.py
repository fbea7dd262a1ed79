"""A run with secrets around it leaves none behind, and no text of a user is a template."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.e2e.dag_process import DEADLINE_S, DagProcess, started

pytestmark = pytest.mark.airflow

SECRETS = {
    "connection": "planted-connection-4c81",
    "environment": "planted-environment-90be",
    "extra": "planted-extra-77d3",
    "fernet": "cGxhbnRlZC1mZXJuZXQta2V5LW9mLTMyLWJ5dGVzISE=",
    "jwt": "planted-jwt-secret-of-more-than-thirty-two-bytes-12ab",
}
TEMPLATE = "{{ 7 * 7 }}{{ conn.tidebench_results.password }}.csv"


@pytest.fixture(scope="module")
def run(
    airflow_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[DagProcess, Path]:
    """A run whose publication fails, because errors say the most: nobody answers on port 1."""
    root = tmp_path_factory.mktemp("data")
    (root / TEMPLATE).write_text("time_s,level\n0,2\n300,4\n")
    results = {
        "conn_type": "postgres",
        "host": "127.0.0.1",
        "port": 1,
        "schema": "results",
        "login": "reporter",
        "password": SECRETS["connection"],
        "extra": {"sslpassword": SECRETS["extra"]},
    }
    environment = airflow_environment | {
        "TIDEBENCH_DATA_ROOT": str(root),
        "AIRFLOW_CONN_TIDEBENCH_RESULTS": json.dumps(results),
        "AIRFLOW__CORE__FERNET_KEY": SECRETS["fernet"],
        "AIRFLOW__API_AUTH__JWT_SECRET": SECRETS["jwt"],
        "OS_PASSWORD": SECRETS["environment"],
        "POSTGRES_PASSWORD": SECRETS["environment"],
    }
    params = {
        "experiment": "planted",
        "pattern": "trace",
        "trace": str(root / TEMPLATE),
        "duration_min": 10,
    }
    with started(environment, params, root / "console.log") as dag:
        dag.process.wait(timeout=DEADLINE_S * 2)  # publication is tried three times
    return dag, root


def test_no_secret_is_in_anything_that_a_run_leaves(
    run: tuple[DagProcess, Path], airflow_environment: dict[str, str]
) -> None:
    """Files, manifests, pages and logs; XComs, rendered templates and the log of the database."""
    dag, root = run
    assert "results database" in dag.said, dag.tail()  # it did come to the failure
    home = Path(airflow_environment["AIRFLOW_HOME"])
    files = [path for folder in (root, home) for path in folder.rglob("*") if path.is_file()]
    assert {"manifest.json", "report.html", "airflow.db"} - {path.name for path in files} <= {
        "report.html"  # not published
    }
    for path in files:
        content = path.read_bytes()
        for name, secret in SECRETS.items():
            assert secret.encode() not in content, f"{name} is in {path}"


def test_the_check_would_find_a_secret(run: tuple[DagProcess, Path]) -> None:
    """What the search looks for is there as it is searched: in the environment of the run."""
    _, root = run
    (root / "leak.txt").write_text(SECRETS["jwt"])
    assert any(SECRETS["jwt"].encode() in path.read_bytes() for path in root.glob("*.txt"))
    (root / "leak.txt").unlink()


def test_the_text_of_a_user_is_no_template(run: tuple[DagProcess, Path]) -> None:
    """A trace whose name is one was read under that name, and is stored under it."""
    _, root = run
    (stored,) = root.glob("planted/runs/*/run.json")
    assert json.dumps(os.fspath(root / TEMPLATE))[1:-1] in stored.read_text()
    assert list(root.glob("planted/runs/*/manifest.json"))
