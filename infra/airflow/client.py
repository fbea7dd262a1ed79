"""Client of Airflow's public REST API for starting an experiment."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

POLL_S = 1.0
ENDED = {"success", "failed"}
COMPONENTS = ("scheduler", "triggerer", "dag_processor")


class Refused(Exception):
    """The API refused a request; the message has its reason."""


class Client:
    """Calls the API as one user. ``url`` is the UI's."""

    answer_s = 30.0

    def __init__(self, url: str) -> None:
        self.url = url
        self.token = ""
        # Proxies of the environment do not reach this machine.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def log_in(self, user: str, password: str) -> None:
        """Get a token. Raises OSError if the server is down, Refused for a wrong password."""
        asked = {"username": user, "password": password}
        self.token = self.ask("POST", "/auth/token", asked)["access_token"]

    def ask(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Any:
        """Send a request; returns the JSON answer.

        Raises Refused for one that is wrong, OSError for a server that is down, busy or broken.
        """
        request = urllib.request.Request(f"{self.url}{path}", method=method)
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        body = None if content is None else json.dumps(content).encode()
        try:
            with self._opener.open(request, body, timeout=self.answer_s) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            if error.code >= 500:  # SQLite that is locked, say
                raise
            raise Refused(f"{method} {path}: {error.code} {error.read()!r}") from error

    def unhealthy(self) -> list[str]:
        """Components without a recent heartbeat."""
        health = self.ask("GET", "/api/v2/monitor/health")
        return [name for name in COMPONENTS if health[name]["status"] != "healthy"]

    def unpause(self, dag_id: str) -> None:
        self.ask("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})

    def trigger(self, dag_id: str, conf: Mapping[str, Any], run_id: str | None = None) -> str:
        """Start a DAG run; returns its id."""
        asked = {"conf": conf, "logical_date": None, "dag_run_id": run_id}
        run: str = self.ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", asked)["dag_run_id"]
        return run

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Task instances of a DAG run."""
        page = self.ask("GET", f"{run_path(dag_id, run_id)}/taskInstances?limit=1000")
        instances: list[dict[str, Any]] = page["task_instances"]
        return instances

    def finish(
        self, dag_id: str, run_id: str, deadline_s: float, say: Callable[[str], None] = print
    ) -> str:
        """Wait for the end of a DAG run, reporting finished tasks; returns its state."""
        end_s, reported = time.monotonic() + deadline_s, set[str]()
        while True:
            state, tasks = self._state_and_tasks(dag_id, run_id)
            for task in tasks:
                done = f"{task['rendered_map_index'] or task['task_id']}: {task['state']}"
                if task["state"] in {*ENDED, "skipped", "upstream_failed"} and done not in reported:
                    reported.add(done)
                    say(done)
            if state in ENDED:
                return state
            if time.monotonic() > end_s:
                raise TimeoutError(f"{dag_id} {run_id} is {state} after {deadline_s:g} s")
            time.sleep(POLL_S)

    def _state_and_tasks(self, dag_id: str, run_id: str) -> tuple[str, list[dict[str, Any]]]:
        """State and tasks of a DAG run; no tasks if the server is too busy to answer."""
        try:
            state: str = self.ask("GET", run_path(dag_id, run_id))["state"]
            return state, self.tasks(dag_id, run_id)
        except (OSError, HTTPException):
            return "unknown", []


def run_path(dag_id: str, run_id: str) -> str:
    """Path of a DAG run below the API."""
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}"
