"""Answers as Flink 2.2.1 does, from a world in virtual time, and fails as it is told to."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from include.service.rest import FlinkRest
from tests.http_server import sends, serving
from tests.service.flink_world import NAMES, World, vertex

Connect = Callable[..., FlinkRest]
"""Makes a client of it."""
Fault = Callable[[BaseHTTPRequestHandler], bool]
"""Answers in its own way and returns True, or leaves it to the world."""


class FakeFlink:
    """What it was asked is in ``asked``, headers of the last request in ``headers``."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fault: Fault = lambda handler: False
        self.asked: list[tuple[str, str]] = []
        self.sent: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.url = ""
        self.no_requirements = False
        self.late_backlog = False
        self.restores_s = 0.0
        self.options: dict[str, str] = {"jobmanager.scheduler": "Adaptive"}
        self.checkpoint_running = False
        self.changed: dict[str, Any] = {}
        """What the job's own answer has in place of the truth."""

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        ours = f"/jobs/{self.world.job}"
        for pattern, answer in self._routes(method, body).items():
            if found := re.fullmatch(pattern.replace("JOB", ours), path):
                return answer(*found.groups())
        return 404, {"errors": [f"{path} not found"]}

    def _routes(self, method: str, body: bytes) -> dict[str, Callable[..., tuple[int, Any]]]:
        world = self.world
        managers = [self._manager(i) for i in range(world.managers)]
        done = {"id": 3, "trigger_timestamp": int(1000 * (world.now_s - 3))}
        checkpoints = {
            "counts": {"in_progress": int(self.checkpoint_running)},
            "latest": {"completed": done},
        }
        restarts = [{"id": "numRestarts", "value": str(world.restarts)}]
        return {
            "/jobs/overview": lambda: (200, {"jobs": [self._overview()]}),
            "JOB": lambda: (200, self._details()),
            "JOB/resource-requirements": lambda: self._resources(method, body),
            "JOB/checkpoints": lambda: (200, checkpoints),
            r"JOB/metrics\?get=numRestarts": lambda: (200, restarts),
            r"JOB/vertices/(\w+)/subtasks/metrics(?:\?get=(.*)&agg=.*)?": self._metrics,
            r"JOB/vertices/\w+/subtasktimes": lambda: (200, self._times()),
            "/jobmanager/config": lambda: (
                200,
                [{"key": key, "value": value} for key, value in self.options.items()],
            ),
            "/taskmanagers": lambda: (200, {"taskmanagers": managers}),
            r"/taskmanagers/tm-\d+/metrics\?get=.*": lambda: self._of_jvm("value"),
            r"/taskmanagers/metrics\?get=.*&agg=avg": lambda: self._of_jvm("avg"),
        }

    def _resources(self, method: str, body: bytes) -> tuple[int, Any]:
        if self.no_requirements:
            return 400, {"errors": ["UnsupportedOperationException: not an adaptive scheduler"]}
        if method == "PUT":
            self._ask(json.loads(body))
            return 200, {}
        return 200, self._requirements()

    def _of_jvm(self, kind: str) -> tuple[int, Any]:
        values = {"Status.JVM.CPU.Load": 0.25, "Status.JVM.CPU.Time": 1e9 * self.world.lasted_s}
        values |= {"Status.JVM.Memory.Heap.Used": 4e8, "Status.JVM.Memory.NonHeap.Used": 1e8}
        return 200, [{"id": name, kind: str(value)} for name, value in values.items()]

    def _overview(self) -> dict[str, Any]:
        world = self.world
        state = "RUNNING" if world.running else "RESTARTING"
        return {"jid": world.job, "name": world.name, "state": state, "start-time": 1}

    def _details(self) -> dict[str, Any]:
        reading = self.world.reading()
        started_ms = int(1000 * self.world.started_s)
        nodes: list[dict[str, Any]] = [{"id": vertex(name)} for name in NAMES]
        for before, node in zip(list(NAMES)[:-1], nodes[1:], strict=True):
            node["inputs"] = [{"id": vertex(before)}]
        return {
            "name": self.world.name,
            "state": reading.state,
            "timestamps": {"RUNNING": started_ms, "RESTARTING": int(1000 * self.world.down_s)},
            "vertices": [
                {
                    "id": one.vertex,
                    "name": name,
                    "parallelism": one.parallelism,
                    "maxParallelism": one.max_parallelism,
                    "slotSharingGroupId": one.slot_group,
                    "status": "RUNNING",
                    "start-time": started_ms,
                    "metrics": {
                        "read-records": one.records_in or 0,
                        "read-records-complete": True,
                        "write-records": one.records_out,
                        "write-records-complete": True,
                        "accumulated-busy-time": 1000 * one.busy_s,
                        "accumulated-idle-time": 1000 * one.idle_s,
                        "accumulated-backpressured-time": 0,
                    },
                }
                for one, name in zip(reading.operators, NAMES.values(), strict=True)
            ],
            "plan": {"nodes": nodes},
        } | self.changed

    def _times(self) -> dict[str, Any]:
        running_ms = int(1000 * (self.world.started_s + self.restores_s))
        return {"subtasks": [{"subtask": 0, "timestamps": {"RUNNING": running_ms}}]}

    def _requirements(self) -> dict[str, Any]:
        return {
            vertex(name): {"parallelism": {"lowerBound": 1, "upperBound": most}}
            for name, most in self.world.most.items()
        }

    def _ask(self, asked: dict[str, Any]) -> None:
        """Rescales at once, down for five seconds."""
        self.sent.append(asked)
        names = {vertex(name): name for name in NAMES}
        most = {names[one]: of["parallelism"]["upperBound"] for one, of in asked.items()}
        if most != self.world.most:
            self.world.most = most
            self.world.restart(5.0, **most)

    def _manager(self, number: int) -> dict[str, Any]:
        return {
            "id": f"tm-{number}",
            "slotsNumber": 2,
            "freeSlots": 0,
            "hardware": {"cpuCores": 8},
            "totalResource": {"cpuCores": 2.0},
            "memoryConfiguration": {"totalProcessMemory": 1_000_000_000},
        }

    def _metrics(self, of: str, get: str | None) -> tuple[int, list[dict[str, Any]]]:
        """One unknown name empties the answer, as Flink does."""
        values: dict[str, Any] = {
            "busyTimeMsPerSecond": 500.0,
            "idleTimeMsPerSecond": 500.0,
            "backPressuredTimeMsPerSecond": "NaN",
            "currentInputWatermark": float(-(2**63)),
        }
        if of == vertex("source") and not self.late_backlog:
            values["Source__events.pendingRecords"] = self.world.pending
        if get is None:
            return 200, [{"id": name} for name in values]
        asked = get.split(",")
        if any(name not in values for name in asked):
            return 200, []
        return 200, [
            {"id": name, **dict.fromkeys(("min", "max", "avg", "sum"), values[name])}
            for name in asked
        ]


@contextmanager
def a_flink(world: World, certificate: Path | None = None) -> Iterator[FakeFlink]:
    """It listens on 127.0.0.1 until the end, over TLS with a file of certificate and key."""
    fake = FakeFlink(world)

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        fake.asked.append((handler.command, handler.path))
        fake.headers = dict(handler.headers)
        if not fake.fault(handler):
            status, content = fake.answer(handler.command, handler.path, body)
            sends(handler, status, json.dumps(content).encode())

    with serving(answer, certificate) as port:
        fake.url = f"http{'s' if certificate else ''}://127.0.0.1:{port}"
        yield fake


def a_client(flink: FakeFlink, timeout_s: float) -> FlinkRest:
    return FlinkRest(flink.url, now_s=lambda: flink.world.now_s, timeout_s=timeout_s, settles_s=0.0)


def hangs(handler: BaseHTTPRequestHandler) -> bool:
    """Says nothing, but keeps the connection."""
    time.sleep(3)
    handler.close_connection = True
    return True


def drips_at_last(handler: BaseHTTPRequestHandler) -> bool:
    """The same as the last answer of a connection."""
    return drips(handler, "close")


def drips(handler: BaseHTTPRequestHandler, connection: str = "keep-alive") -> bool:
    """A byte now and then: every read succeeds, the answer never ends."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.send_header("Connection", connection)
    handler.end_headers()
    try:
        for _ in range(60):
            handler.wfile.write(b"[")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass
    handler.close_connection = True
    return True


def hangs_up(handler: BaseHTTPRequestHandler) -> bool:
    handler.close_connection = True
    return True


def answers_500(handler: BaseHTTPRequestHandler) -> bool:
    broken = b'{"errors": ["java.lang.Exception: it is broken\\n\\tat A.b(C.java)"]}'
    return sends(handler, 500, broken)


def sends_on(handler: BaseHTTPRequestHandler) -> bool:
    """To a page for a login, say."""
    return sends(handler, 302, b"", {"Location": "/login"})


def answers_401(handler: BaseHTTPRequestHandler) -> bool:
    return sends(handler, 401, b'{"errors": ["no token"]}')


def answers_403_as_page(handler: BaseHTTPRequestHandler) -> bool:
    return sends(handler, 403, b"<html>Forbidden</html>")


def answers_other_json(handler: BaseHTTPRequestHandler) -> bool:
    return sends(handler, 200, b'{"hello": "world"}')


def truncates(handler: BaseHTTPRequestHandler) -> bool:
    """Half an answer, then the connection ends."""
    handler.close_connection = True
    return sends(handler, 200, b'{"jobs": [{"jid": "', length=400)


def half_json(handler: BaseHTTPRequestHandler) -> bool:
    return sends(handler, 200, b'{"jobs": [{"jid": "')


def nested_json(handler: BaseHTTPRequestHandler) -> bool:
    return sends(handler, 200, b"[" * 200_000)
