"""An Airflow of its own: API server, scheduler with LocalExecutor, DAG processor and triggerer.

Every service is a session of its own, and nothing of it survives the block that started it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from include.files.whole import new_file
from infra.airflow.client import Client, run_path
from infra.airflow.processes import end_session, processes_of
from infra.airflow.settings import SERVICES, service_settings
from tests.live.world import wait_until
from tests.ports import free_port

REPOSITORY = Path(__file__).parents[2]
USER, PASSWORD = "admin", "a password of this test"
VIEWER = "viewer"
START_S = 600.0
POLL_S = 1.0


class Airflow(Client):
    """The services, asked through the public REST API."""

    answer_s = 120.0

    def __init__(self, environment: Mapping[str, str], logs: Path) -> None:
        super().__init__(environment["AIRFLOW__API__BASE_URL"])
        self.environment = environment
        self.logs = logs
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, service: str) -> None:
        """Start one service in a session of its own; its log goes on where it was."""
        with (self.logs / f"{service}.log").open("a") as sink:
            self.processes[service] = subprocess.Popen(
                ["airflow", service, *SERVICES[service]],
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, service: str) -> None:
        """SIGKILL a service with everything that it has started."""
        process = self.processes[service]
        process.kill()
        end_session(process.pid, process)

    def stop(self) -> None:
        """Ask every service to stop, then kill what is left."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            end_session(process.pid, process)

    def wait_until_up(self, dag_ids: Sequence[str]) -> None:
        """Wait for the API, then for every DAG, and unpause them."""
        end_s = time.monotonic() + START_S
        while True:
            try:
                self.log_in(USER, PASSWORD)
                dags = self.ask("GET", "/api/v2/dags")["dags"]
                if {dag["dag_id"] for dag in dags} >= set(dag_ids):
                    break
            except OSError:
                pass
            assert time.monotonic() < end_s, self.tail()
            time.sleep(POLL_S)
        for dag_id in dag_ids:
            self.unpause(dag_id)

    def token_of(self, user: str) -> str:
        """A token of another user."""
        other = Client(self.url)
        other.log_in(user, PASSWORD)
        return other.token

    def pause(self, dag_id: str) -> None:
        """Have a DAG begin no more tasks, also of runs that are under way."""
        self.ask("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": True})

    def until(
        self, dag_id: str, run_id: str, holds: Callable[[dict[tuple[str, int], str]], bool]
    ) -> None:
        """Wait until something holds for the states of the tasks."""
        wait_until(lambda: holds(self.states(dag_id, run_id)), self.tail, START_S)

    def end_by_hand(self, dag_id: str, run_id: str) -> None:
        """Mark a DAG run failed, as a click in the UI does."""
        self.ask("PATCH", run_path(dag_id, run_id), {"state": "failed"})

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Every task instance as the API tells it, page by page."""
        tasks: list[dict[str, Any]] = []
        while True:
            page = f"limit=100&offset={len(tasks)}&order_by=id"
            page_of_tasks = self.ask("GET", f"{run_path(dag_id, run_id)}/taskInstances?{page}")
            tasks += page_of_tasks["task_instances"]
            if not page_of_tasks["task_instances"] or len(tasks) >= page_of_tasks["total_entries"]:
                return tasks

    def states(self, dag_id: str, run_id: str) -> dict[tuple[str, int], str]:
        """State of every task instance, by task and map index."""
        tasks = self.tasks(dag_id, run_id)
        return {(task["task_id"], task["map_index"]): task["state"] for task in tasks}

    def runs(self, dag_id: str) -> dict[str, str]:
        """When each DAG run began, by its id."""
        runs = self.ask("GET", f"/api/v2/dags/{dag_id}/dagRuns?limit=100")["dag_runs"]
        return {run["dag_run_id"]: run["start_date"] for run in runs}

    def log_of(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> str:
        """Everything that the last try of a task has logged."""
        place = f"{run_path(dag_id, run_id)}/taskInstances/{task_id}"
        shown = f"{place}/{map_index}" if map_index >= 0 else place
        last = self.ask("GET", shown)["try_number"]
        log = self.ask("GET", f"{place}/logs/{last}?map_index={map_index}&full_content=true")
        return json.dumps(log)

    def clear(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> None:
        """Clear a task, or one copy of it, with what is downstream, as a click in the UI does."""
        self.ask(
            "POST",
            f"/api/v2/dags/{dag_id}/clearTaskInstances",
            {
                "dry_run": False,
                "dag_run_id": run_id,
                "task_ids": [[task_id, map_index] if map_index >= 0 else task_id],
                "include_downstream": True,
                "only_failed": False,
                "reset_dag_runs": True,
            },
        )

    def tail(self) -> str:
        """The end of every log, for an assertion message."""
        return "\n".join(
            f"--- {log.name}\n" + "\n".join(log.read_text().splitlines()[-25:])
            for log in sorted(self.logs.glob("*.log"))
        )


def kill_task(scheduler: int) -> bool:
    """SIGKILL the newest process that works on a task, as the kernel does when memory is short.

    ``scheduler`` is the process of a scheduler with LocalExecutor. Returns whether there was one.
    """
    tasks = [pid for pid in processes_of(scheduler) if _parent(_parent(pid)) == scheduler]
    for newest in sorted(tasks)[-1:]:
        os.kill(newest, signal.SIGKILL)
    return bool(tasks)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def migrated(home: Path) -> dict[str, str]:
    """The environment of an Airflow of its own: this repository's DAGs, a database without runs.

    Such a database takes ten seconds, so all test processes copy the one of these requirements.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    environment = ours | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "plugins")]),
    }
    home.mkdir(parents=True, exist_ok=True)
    pins = sha256((REPOSITORY / "requirements.txt").read_bytes()).hexdigest()[:12]
    empty = REPOSITORY / "var" / f"airflow-without-runs-{pins}.db"
    if empty.is_file():
        shutil.copyfile(empty, home / "airflow.db")
        return environment
    migrate = ["airflow", "db", "migrate"]
    done = subprocess.run(migrate, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    with new_file(empty) as draft:
        shutil.copyfile(home / "airflow.db", draft)
    return environment


def set_up(home: Path) -> dict[str, str]:
    """The same as `make setup` leaves it: with airflow.cfg, whose secret the services share."""
    environment = migrated(home)
    migrate = ["airflow", "db", "migrate"]
    subprocess.run(migrate, env=environment, capture_output=True, check=True)
    return environment


@contextmanager
def airflow_services(
    environment: Mapping[str, str],
    logs: Path,
    dag_ids: Sequence[str],
    services: Sequence[str] = tuple(SERVICES),
    settings: Mapping[str, str] | None = None,
    prefix: str = "",
) -> Iterator[Airflow]:
    """Start the services and wait until the DAGs are there; stop all of them at the end.

    ``prefix`` is the path below which they are, as behind a reverse proxy.
    """
    ours = _settings(free_port(), logs) | dict(settings or {})
    ours["AIRFLOW__API__BASE_URL"] += prefix
    airflow = Airflow(dict(environment) | ours, logs)
    try:
        for service in services:
            airflow.start(service)
        airflow.wait_until_up(dag_ids)
        yield airflow
    finally:
        airflow.stop()


def _settings(port: int, folder: Path) -> dict[str, str]:
    passwords = folder / "passwords.json"
    passwords.write_text(json.dumps({USER: PASSWORD, VIEWER: PASSWORD}), encoding="utf-8")
    return service_settings(port) | {
        "AIRFLOW__API_AUTH__JWT_SECRET": os.urandom(32).hex(),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin,{VIEWER}:viewer",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        # A task whose process and executor are gone is noticed by this alone.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    }
