"""An Airflow of its own: API server, scheduler with LocalExecutor, DAG processor and triggerer.

Every service is a session of its own, and nothing of it survives the block that started it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from infra.airflow.processes import end_session
from infra.airflow.settings import SERVICES, service_settings

START_S = 240.0
POLL_S = 1.0
ENDED = {"success", "failed"}


class Airflow:
    """The services, asked through the public REST API."""

    def __init__(self, environment: Mapping[str, str], logs: Path) -> None:
        self.environment = environment
        self.logs = logs
        self.url = environment["AIRFLOW__API__BASE_URL"]
        self.token = ""

    def ask(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Any:
        """One request; the answer as JSON."""
        request = urllib.request.Request(f"{self.url}{path}", method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        body = None if content is None else json.dumps(content).encode()
        try:
            with urllib.request.urlopen(request, body, timeout=30) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from error

    def wait_until_up(self, dag_ids: Sequence[str]) -> None:
        """Wait for the API, then for every DAG, and unpause them."""
        end_s = time.monotonic() + START_S
        while True:
            try:
                self.token = self.ask("GET", "/auth/token")["access_token"]
                known = {dag["dag_id"] for dag in self.ask("GET", "/api/v2/dags")["dags"]}
                if known >= set(dag_ids):
                    break
            except OSError:
                pass
            assert time.monotonic() < end_s, self.tail()
            time.sleep(POLL_S)
        for dag_id in dag_ids:
            self._unpause(dag_id)

    def unpause(self, dag_id: str) -> str:
        """Let a DAG with a schedule begin; the id of its first DAG run."""
        self._unpause(dag_id)
        end_s = time.monotonic() + START_S
        while not (runs := self.runs(dag_id)):
            assert time.monotonic() < end_s, self.tail()
            time.sleep(POLL_S)
        return next(iter(runs))

    def _unpause(self, dag_id: str) -> None:
        self.ask("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})

    def trigger(self, dag_id: str, conf: Mapping[str, Any]) -> str:
        """Start a DAG run; its id."""
        asked = {"conf": conf, "logical_date": None}
        run: str = self.ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", asked)["dag_run_id"]
        return run

    def finish(self, dag_id: str, run_id: str, deadline_s: float) -> str:
        """Wait for the end of a DAG run; its state."""
        end_s = time.monotonic() + deadline_s
        while True:
            state: str = self.ask("GET", self._run(dag_id, run_id))["state"]
            if state in ENDED:
                return state
            assert time.monotonic() < end_s, self.tail()
            time.sleep(POLL_S)

    def states(self, dag_id: str, run_id: str) -> dict[tuple[str, int], str]:
        """State of every task instance, by task and map index."""
        found = self.ask("GET", f"{self._run(dag_id, run_id)}/taskInstances?limit=1000")
        return {(one["task_id"], one["map_index"]): one["state"] for one in found["task_instances"]}

    def runs(self, dag_id: str) -> dict[str, str]:
        """When each DAG run began, by its id."""
        runs = self.ask("GET", f"/api/v2/dags/{dag_id}/dagRuns?limit=100")["dag_runs"]
        return {run["dag_run_id"]: run["start_date"] for run in runs}

    def log_of(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> str:
        """Everything that the last try of a task has logged."""
        place = f"{self._run(dag_id, run_id)}/taskInstances/{task_id}"
        shown = f"{place}/{map_index}" if map_index >= 0 else place
        last = self.ask("GET", shown)["try_number"]
        log = self.ask("GET", f"{place}/logs/{last}?map_index={map_index}&full_content=true")
        return json.dumps(log)

    def clear(self, dag_id: str, run_id: str, task_id: str, map_index: int) -> None:
        """Clear one copy of a task with everything downstream, as a click in the UI does."""
        self.ask(
            "POST",
            f"/api/v2/dags/{dag_id}/clearTaskInstances",
            {
                "dry_run": False,
                "dag_run_id": run_id,
                "task_ids": [[task_id, map_index]],
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

    def _run(self, dag_id: str, run_id: str) -> str:
        return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}"


@contextmanager
def airflow_services(
    environment: Mapping[str, str], logs: Path, dag_ids: Sequence[str]
) -> Iterator[Airflow]:
    """Start every service and wait until the DAGs are there; stop all of them at the end."""
    settings = dict(environment) | _settings(_free_port())
    with ExitStack() as stack:
        for service, options in SERVICES.items():
            sink = stack.enter_context((logs / f"{service}.log").open("w"))
            process = subprocess.Popen(
                ["airflow", service, *options],
                env=settings,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            stack.callback(end_session, process.pid, process)
        airflow = Airflow(settings, logs)
        airflow.wait_until_up(dag_ids)
        yield airflow


def _settings(port: int) -> dict[str, str]:
    return service_settings(port) | {
        "AIRFLOW__API_AUTH__JWT_SECRET": os.urandom(32).hex(),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
