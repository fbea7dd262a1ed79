"""Airflow's public REST API, as far as starting an experiment needs it."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

ANSWER_S = 30.0
POLL_S = 1.0
ENDED = {"success", "failed"}
COMPONENTS = ("scheduler", "triggerer", "dag_processor")


class Refused(Exception):
    """The API said no; the message has its reason."""


class Client:
    """One user of one Airflow. ``url`` is where its UI is."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.token = ""
        # A proxy of the environment leads elsewhere.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def log_in(self, user: str, password: str) -> None:
        """Get a token. Raises OSError while nobody answers, Refused for a wrong password."""
        asked = {"username": user, "password": password}
        self.token = self.ask("POST", "/auth/token", asked)["access_token"]

    def ask(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Any:
        """One request; the answer as JSON."""
        request = urllib.request.Request(f"{self.url}{path}", method=method)
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        body = None if content is None else json.dumps(content).encode()
        try:
            with self._opener.open(request, body, timeout=ANSWER_S) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise Refused(f"{method} {path}: {error.code} {error.read()!r}") from error

    def unhealthy(self) -> list[str]:
        """Components without a recent heartbeat."""
        health = self.ask("GET", "/api/v2/monitor/health")
        return [name for name in COMPONENTS if health[name]["status"] != "healthy"]

    def unpause(self, dag_id: str) -> None:
        self.ask("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})

    def trigger(self, dag_id: str, conf: Mapping[str, Any]) -> str:
        """Start a DAG run; its id."""
        asked = {"conf": conf, "logical_date": None}
        run: str = self.ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", asked)["dag_run_id"]
        return run

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Every task instance of a DAG run."""
        found = self.ask("GET", f"{_run(dag_id, run_id)}/taskInstances?limit=1000")
        instances: list[dict[str, Any]] = found["task_instances"]
        return instances

    def finish(
        self, dag_id: str, run_id: str, deadline_s: float, say: Callable[[str], None]
    ) -> str:
        """Wait for the end of a DAG run, saying what has been done; its state."""
        end_s, told = time.monotonic() + deadline_s, set[str]()
        while True:
            state, tasks = self._seen(dag_id, run_id)
            for task in tasks:
                done = f"{task['rendered_map_index'] or task['task_id']}: {task['state']}"
                if task["state"] in {*ENDED, "skipped", "upstream_failed"} and done not in told:
                    told.add(done)
                    say(done)
            if state in ENDED:
                return state
            if time.monotonic() > end_s:
                raise TimeoutError(f"{dag_id} {run_id} is {state} after {deadline_s:g} s")
            time.sleep(POLL_S)

    def _seen(self, dag_id: str, run_id: str) -> tuple[str, list[dict[str, Any]]]:
        """State and tasks of a DAG run; of a server that is too busy to answer, none."""
        try:
            state: str = self.ask("GET", _run(dag_id, run_id))["state"]
            return state, self.tasks(dag_id, run_id)
        except OSError:
            return "unknown", []


def _run(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}"
