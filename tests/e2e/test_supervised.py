"""`make airflow`: a first experiment in it, and ten while everything of it is killed in turn.

Nothing is done by hand after they are triggered. `make test-scheduler`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from include.results.tables.staged import read_table
from infra.airflow.client import Client, Refused
from infra.airflow.local import USER
from infra.airflow.processes import born, end_session, processes_of
from infra.airflow.settings import SERVICES
from tests.e2e.airflow_services import set_up
from tests.live.world import wait_until
from tests.ports import free_port

pytestmark = pytest.mark.scheduler

START_S, DEADLINE_S, POLL_S = 900.0, 3600.0, 1.0
RUNS = 10
SHORT = {"duration_min": 6, "btu_min": 2, "controller": "btu"}
VICTIMS = ["scheduler", "task", "api-server", "dag-processor", "triggerer", "task"] * 2
EVERY_S = 20.0


class Local:
    """`make airflow` as a process, and how to reach it."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self.environment, self.log = environment, log
        self.home = Path(environment["AIRFLOW_HOME"])
        self.client = Client(f"http://127.0.0.1:{environment['TIDEBENCH_PORT']}")
        with log.open("a") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "infra.airflow.local", "up"],
                env=dict(environment),
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self.log.read_text(), self.log.read_text, START_S)

    def pids(self) -> dict[str, int]:
        """The process of each service, once all of them have one."""

        def services() -> list[tuple[int, float]] | None:
            _, *known = json.loads((self.home / "services.json").read_text())
            up = len(known) == len(SERVICES) and all(born(pid) == at for pid, at in known)
            return known if up else None

        known = wait_until(services, self.log.read_text, START_S)
        return {name: pid for name, (pid, _) in zip(SERVICES, known, strict=True)}

    def kill(self, victim: str) -> bool:
        """SIGKILL a service, or a task at its first try; whether there was one.

        A task that is killed at each of its three tries has failed, as its DAG says.
        """
        if victim != "task":
            os.kill(self.pids()[victim], signal.SIGKILL)
            return True
        running = "/api/v2/dags/experiment/dagRuns/~/taskInstances?state=running"
        tasks = self.ask("GET", running)["task_instances"]
        scheduler_pids = processes_of(self.pids()["scheduler"])
        for pid in (
            task["pid"]
            for task in tasks
            if task["try_number"] == 1 and task["pid"] in scheduler_pids
        ):
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    def ask(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Any:
        """An answer of the API, as soon as it gives one. What was asked already is no error."""
        end_s = time.monotonic() + START_S
        while True:
            try:
                return self.client.ask(method, path, content)
            except (OSError, Refused) as error:
                if ": 409 " in str(error):
                    return None
                if ": 4" in str(error) or time.monotonic() > end_s:
                    raise
            time.sleep(POLL_S)

    def trigger(self, name: str, form: Mapping[str, Any]) -> None:
        """One run of the DAG `experiment` with this id, however often it has to be asked for."""
        asked = {"dag_run_id": name, "conf": {**form, "experiment": name}, "logical_date": None}
        self.ask("POST", "/api/v2/dags/experiment/dagRuns", asked)

    def down(self) -> str:
        """`make airflow-down`; what it says."""
        command = [sys.executable, "-m", "infra.airflow.local", "down"]
        done = subprocess.run(command, env=dict(self.environment), capture_output=True, check=True)
        return done.stdout.decode()


@pytest.fixture
def local_environment(tmp_path: Path) -> dict[str, str]:
    """With a database of its own: no other scheduler takes its tasks."""
    ours = {"TIDEBENCH_DATA_ROOT": str(tmp_path), "TIDEBENCH_PORT": str(free_port())}
    return set_up(tmp_path / "airflow") | ours


@contextmanager
def up(environment: Mapping[str, str], log: Path) -> Iterator[Local]:
    """`make airflow`; nothing of it survives the block."""
    local = Local(environment, log)
    try:
        yield local
    finally:
        local.down()
        end_session(local.process.pid, local.process)


def test_a_first_experiment_is_published_and_down_stops_everything(
    local_environment: dict[str, str], tmp_path: Path
) -> None:
    with up(local_environment, tmp_path / "up.log") as local:
        passwords = local.home / "passwords.json"
        wait_until(passwords.is_file, "a password")
        done = subprocess.run(
            [sys.executable, "-m", "infra.airflow.first_experiment", local.client.url,
             str(passwords), "duration_min=10"],
            cwd=tmp_path, env=local_environment, capture_output=True, text=True,
            timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert "the run is a success" in said, said + local.log.read_text()
        assert (tmp_path / "first" / "published" / "report.html").is_file()
        assert local.client.url in local.log.read_text()
        assert local.down() == "Airflow is stopped.\n"


def states_of(local: Local) -> dict[str, str]:
    runs = local.ask("GET", "/api/v2/dags/experiment/dagRuns?limit=100")["dag_runs"]
    return {run["dag_run_id"]: run["state"] for run in runs}


def test_ten_runs_are_published_while_everything_is_killed_in_turn(
    local_environment: dict[str, str], tmp_path: Path
) -> None:
    begin_s, killed, left = time.monotonic(), Counter[str](), list(VICTIMS)
    with up(local_environment, tmp_path / "up.log") as local:
        local.wait_for("log in as")
        password = json.loads((local.home / "passwords.json").read_text())[USER]
        assert password not in local.log.read_text()
        local.client.log_in(USER, password)
        names = [f"killed_{number}" for number in range(RUNS)]
        for seed, name in enumerate(names):
            local.trigger(name, SHORT | {"seed": seed})
        up_s, due_s = time.monotonic() - begin_s, time.monotonic()
        while not {"success", "failed"} >= set((states := states_of(local)).values()):
            assert time.monotonic() - begin_s < DEADLINE_S, states
            if left and time.monotonic() >= due_s and local.kill(left[0]):
                killed[left.pop(0)] += 1
                due_s = time.monotonic() + EVERY_S
            time.sleep(POLL_S)
        took_s = time.monotonic() - begin_s - up_s
        print(f"up after {up_s:.0f} s; {RUNS} runs in {took_s:.0f} s; killed: {dict(killed)}")
        print(local.log.read_text())
        assert Counter(states.values()) == {"success": RUNS}
        assert left == [], "not everything was killed while runs were under way"
        for seed, name in enumerate(names):
            (row,) = read_table(tmp_path / name / "published" / "runs.parquet")
            assert row["seed"] == seed
        for service in SERVICES:
            assert f"{service} was killed by SIGKILL (signal 9)" in local.log.read_text()

        sessions = local.pids().values()
        local.process.send_signal(signal.SIGINT)  # Ctrl-C
        assert local.process.wait(timeout=START_S) == 0
        assert [processes_of(session) for session in sessions] == [[]] * len(SERVICES)


def test_down_stops_what_was_started_elsewhere_also_when_that_was_killed(
    local_environment: dict[str, str], tmp_path: Path
) -> None:
    for number in (signal.SIGCONT, signal.SIGKILL):
        with up(local_environment, tmp_path / f"{number}.log") as local:
            local.wait_for("Starting Airflow")
            wait_until((local.home / "services.json").exists, "services are started")
            sessions = local.pids().values()
            local.process.send_signal(number)
            assert "Airflow is stopped" in local.down()
            assert [processes_of(session) for session in sessions] == [[]] * len(SERVICES)
            assert local.down() == "Airflow does not run.\n"
