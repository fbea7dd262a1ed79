"""Flink's REST interface, as far as it is needed. Nobody but this machine can reach it.

What it says of jobs is up to a second old (`web.refresh-interval`), so the instances themselves say
where they run and what they have done (`instances.py`); asked here are changes and checkpoints.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from include.model.errors import TestbedError

TIMEOUT_S = 5.0
"""A request is over by then, whatever the other side does."""
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


@contextmanager
def as_it_should() -> Iterator[None]:
    """An answer in which something is missing, or is of another kind, is none."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise NoAnswerError(f"Flink's answer has not what it should: {error!r}") from error


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

    @as_it_should()
    def vertices(self) -> dict[str, str]:
        """The id of every source and operator by name."""
        return {named(each): str(each["id"]) for each in self._get("")["vertices"]}

    @as_it_should()
    def initializing(self) -> list[str]:
        """Sources and operators with a task that does not run yet although it is there."""
        return [named(each) for each in self._get("")["vertices"] if each["tasks"]["INITIALIZING"]]

    @as_it_should()
    def hosts_of(self, vertex: str) -> list[str]:
        """The TaskManager of each subtask."""
        subtasks = self._get(f"/vertices/{vertex}")["subtasks"]
        return [str(each.get("taskmanager-id", "")) for each in subtasks]

    @as_it_should()
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

    @as_it_should()
    def trigger_checkpoint(self) -> str:
        """Begin one, and return what to ask for it by."""
        answer = self._send("POST", "/checkpoints", {"checkpointType": "FULL"})
        return str(answer["request-id"])

    @as_it_should()
    def checkpoint_failure(self, trigger: str) -> str | None:
        """Why a triggered checkpoint failed; "" when it is complete, None while it runs."""
        answer = self._get(f"/checkpoints/{trigger}")
        if answer["status"]["id"] != "COMPLETED":
            return None
        cause = answer.get("operation", {}).get("failureCause")
        return first_reason(str(cause.get("stack-trace", cause))) if cause else ""

    @as_it_should()
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

    @as_it_should()
    def task_managers(self) -> set[str]:
        """Names of those that are registered."""
        answer = self._request("GET", "/taskmanagers")
        return {str(each["id"]) for each in answer["taskmanagers"]}

    def _get(self, path: str) -> Any:
        return self._request("GET", f"/jobs/{self.job}{path}")

    def _send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        return self._request(method, f"/jobs/{self.job}{path}", body)

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        with closing(FlinkHttp(f"http://127.0.0.1:{self.port}")) as flink:
            return flink.request(method, path, body)


class FlinkHttp:
    """Requests to a Flink at ``url``, over one connection that is kept."""

    def __init__(
        self,
        url: str,
        timeout_s: float = TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._url, (_, host, self._prefix, *_) = url, urlsplit(url)
        self._headers = {"Accept": "application/json", **(headers or {})}
        self._connection = (
            HTTPSConnection(host, timeout=timeout_s, context=context)
            if context
            else HTTPConnection(host, timeout=timeout_s)
        )
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """The next request opens the connection again."""
        self._connection.close()

    def request(self, method: str, path: str, body: Any, within_s: float = TIMEOUT_S) -> Any:
        """The answer as JSON, as is ``body``; None is none. When the time is over the socket is
        shut. Raises NoAnswerError when Flink does not answer, refuses, or sends on."""
        what, late = f"{method} {self._url}{path}", threading.Event()

        def give_up() -> None:
            late.set()
            # Not by close, which waits for the response, nor by the shutdown of TLS, which takes
            # the session away from a read that is under way.
            if (opened := self._connection.sock or self._socket) is not None:
                with suppress(OSError):
                    socket.socket.shutdown(opened, socket.SHUT_RDWR)

        watch = threading.Timer(within_s, give_up)
        watch.daemon = True
        watch.start()
        try:
            response = self._sent(method, path, body, late)
            status, text = response.status, response.read()
            if late.is_set():
                raise TimeoutError
            answer = json.loads(text) if text else {}
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            why = f"Flink's answer to {what} is no JSON (HTTP {status})"
            raise NoAnswerError(why + _remedy(status)) from error
        except (OSError, HTTPException, ValueError) as error:
            self._connection.close()
            reason = str(error) or type(error).__name__
            if late.is_set() or isinstance(error, TimeoutError):
                reason = "no whole answer in time"  # in the same words every time
            if isinstance(error, ssl.SSLCertVerificationError):
                reason += "; name the file of its certificates in TIDEBENCH_FLINK_CA"
            if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
                reason += "; check the address and that it runs"
            raise NoAnswerError(f"Flink does not answer {what}: {reason}") from error
        finally:
            watch.cancel()
        if not 200 <= status < 300:  # sent on to a page for a login, it was not carried out
            why = f"Flink refuses {what} (HTTP {status}): {_complaint(answer)}"
            raise NoAnswerError(why + _remedy(status))
        return answer

    def _sent(self, method: str, path: str, body: Any, late: threading.Event) -> HTTPResponse:
        """The head of the answer. A connection that Flink has closed meanwhile is opened once
        more."""
        content, headers = None, self._headers
        if body is not None:
            content, headers = json.dumps(body), {**headers, "Content-Type": "application/json"}

        def once() -> HTTPResponse:
            if self._connection.sock is None:
                self._connection.connect()  # takes its own time, and nothing to shut is there yet
                if late.is_set():
                    raise TimeoutError
            self._connection.request(method, self._prefix + path, content, headers)
            self._socket = self._connection.sock  # the last response of a connection takes it away
            return self._connection.getresponse()

        reused = self._connection.sock is not None
        try:
            return once()
        except (ConnectionError, HTTPException):
            if not reused or late.is_set() or content is not None:  # never ask twice
                raise
            self._connection.close()
            return once()


def _remedy(status: int) -> str:
    token = "; set TIDEBENCH_FLINK_TOKEN, or TIDEBENCH_FLINK_TOKEN_FILE, to one that is let in"
    return token if status in (401, 403) else ""


def _complaint(answer: Any) -> str:
    errors = answer.get("errors") if isinstance(answer, dict) else None
    return first_reason(str(errors[-1])) if errors else str(answer)[:300]
