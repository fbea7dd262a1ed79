"""Flink's REST interface, as far as it is needed. Nobody but this machine can reach it.

What it says of jobs is up to a second old (`web.refresh-interval`), so the instances themselves say
where they run and what they have done (`instances.py`); asked here are changes and checkpoints.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.model.errors import TestbedError

TIMEOUT_S = 5.0
BOUND = {"lowerBound": 1}
"""Always: a job that lost slots goes on with those that are left."""


class NoAnswerError(TestbedError):
    """The JobManager does not answer, or not as it should."""


NOT_YET = ("is not being executed", "tasks not ready", "suspending", "sharing the ChannelState")
"""Reasons of a checkpoint that was too early: a task still goes through what its buffers had."""


def first_reason(trace: str) -> str:
    """What the innermost exception of a stack trace says, on one line."""
    reasons = [line for line in trace.splitlines() if line and not line.startswith(("\t", " "))]
    innermost = reasons[-1] if reasons else trace
    return innermost.removeprefix("Caused by: ")[-300:]


def named(vertex: Mapping[str, Any]) -> str:
    """The source or operator, without what Flink has chained to it."""
    return str(vertex["name"]).removeprefix("Source: ").partition(" ->")[0]


def too_early(reason: str) -> bool:
    """Whether a checkpoint failed only because it came too soon after a start of the job."""
    return any(words in reason for words in NOT_YET)


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The newest complete checkpoint (``id`` 0: none yet), and how many have failed."""

    id: int = 0
    took_s: float = 0.0
    state_bytes: int = 0
    failed: int = 0
    why_failed: str = ""


@dataclass(frozen=True, slots=True)
class Rest:
    """One job of one JobManager."""

    port: int
    job: str

    def vertices(self) -> dict[str, str]:
        """The id of every source and operator by name."""
        return {named(each): str(each["id"]) for each in self._get("")["vertices"]}

    def initializing(self) -> list[str]:
        """Sources and operators with a task that does not run yet although it is there."""
        return [named(each) for each in self._get("")["vertices"] if each["tasks"]["INITIALIZING"]]

    def hosts_of(self, vertex: str) -> list[str]:
        """The TaskManager of each subtask."""
        subtasks = self._get(f"/vertices/{vertex}")["subtasks"]
        return [str(each.get("taskmanager-id", "")) for each in subtasks]

    def ask_for(self, instances: Mapping[str, int]) -> None:
        """So many subtasks of each operator, once there is a checkpoint and there are slots."""
        ids = self.vertices()
        if unknown := instances.keys() - ids.keys():
            raise NoAnswerError(f"Flink does not know {', '.join(sorted(unknown))} of the job yet")
        wanted = {
            ids[name]: {"parallelism": {**BOUND, "upperBound": count}}
            for name, count in instances.items()
        }
        requirements = self._get("/resource-requirements")
        self._send("PUT", "/resource-requirements", {**requirements, **wanted})

    def trigger_checkpoint(self) -> str:
        """Begin one, and return what to ask for it by."""
        answer = self._send("POST", "/checkpoints", {"checkpointType": "FULL"})
        return str(answer["request-id"])

    def checkpoint_failure(self, trigger: str) -> str | None:
        """Why a triggered checkpoint failed; "" when it is complete, None while it runs."""
        answer = self._get(f"/checkpoints/{trigger}")
        if answer["status"]["id"] != "COMPLETED":
            return None
        cause = answer.get("operation", {}).get("failureCause")
        return first_reason(str(cause.get("stack-trace", cause))) if cause else ""

    def checkpoints(self) -> Checkpoints:
        """What has become of them so far."""
        answer = self._get("/checkpoints")
        latest = answer["latest"]
        done, failed = latest.get("completed") or {}, latest.get("failed") or {}
        return Checkpoints(
            id=int(done.get("id", 0)),
            took_s=done.get("end_to_end_duration", 0) / 1000,
            state_bytes=int(done.get("state_size", 0)),
            failed=int(answer["counts"]["failed"]),
            why_failed=str(failed.get("failure_message", ""))[:200],
        )

    def task_managers(self) -> set[str]:
        """Names of those that are registered."""
        answer = self._request("GET", f"http://127.0.0.1:{self.port}/taskmanagers", None)
        return {str(each["id"]) for each in answer["taskmanagers"]}

    def _get(self, path: str) -> Any:
        return self._request("GET", self._url(path), None)

    def _send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        return self._request(method, self._url(path), json.dumps(body).encode())

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/jobs/{self.job}{path}"

    @staticmethod
    def _request(method: str, url: str, body: bytes | None) -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, data=body, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                text = answer.read()
            return json.loads(text) if text else {}
        except urllib.error.HTTPError as error:
            complaint = error.read().decode(errors="replace")[:300]
            raise NoAnswerError(f"Flink refuses {method} {url}: {complaint}") from error
        except (OSError, ValueError) as error:
            raise NoAnswerError(f"Flink does not answer {method} {url}: {error}") from error
