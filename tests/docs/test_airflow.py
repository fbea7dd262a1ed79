"""`make airflow`, a first experiment in it by the REST API, and `make airflow-down`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from infra.airflow.processes import end_session
from tests.e2e.airflow_services import set_up
from tests.live.world import wait_until
from tests.ports import free_port

pytestmark = pytest.mark.scheduler


MINUTES = 20
"""For one program, on a machine that others use as well."""


def python(folder: Path, *arguments: str, variables: Mapping[str, str]) -> str:
    """What a program prints there; fails with all of it when it fails."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=dict(variables), capture_output=True,
        text=True, timeout=MINUTES * 60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_airflow_on_this_machine(tmp_path: Path) -> None:
    home, port = tmp_path / "airflow", free_port()
    variables = set_up(home) | {
        "TIDEBENCH_PORT": str(port), "TIDEBENCH_DATA_ROOT": str(tmp_path / "var"),
    }  # fmt: skip
    log = tmp_path / "up.log"
    with log.open("w") as sink:
        up = subprocess.Popen(
            [sys.executable, "-m", "infra.airflow.local", "up"], env=variables, cwd=tmp_path,
            stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True,
        )  # fmt: skip
    try:
        passwords = home / "passwords.json"
        wait_until(passwords.is_file, "a password")
        said = python(
            tmp_path, "-m", "infra.airflow.first_experiment", f"http://127.0.0.1:{port}",
            str(passwords), "duration_min=10", variables=variables,
        )  # fmt: skip
        assert "the run is a success" in said, log.read_text()
        assert (tmp_path / "var" / "first" / "published" / "report.html").is_file()
        assert re.search(rf"http://\S+:{port}", log.read_text())
        down = python(tmp_path, "-m", "infra.airflow.local", "down", variables=variables)
        assert down == "Airflow is stopped.\n"
        assert up.wait(timeout=60) is not None
    finally:
        end_session(up.pid, up)
