"""A JobManager of a few requests: one job whose requirements it keeps, and that fails on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VERTICES = {"a" * 32: "parse", "b" * 32: "store"}


@dataclass
class FlinkServer:
    """What it answers from; ``rescales`` says whether what is asked for comes up at once."""

    job: str = "1" * 32
    bounds: dict[str, list[int]] = field(
        default_factory=lambda: {vertex: [1, 2] for vertex in VERTICES}
    )
    runs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERTICES, 2))
    rescales: bool = True
    checkpoint: bool = False
    hangs_after_put_s: float = 0.0
    fails: tuple[str, ...] = ()
    """Methods that are answered by 500."""
    puts: list[dict[str, int]] = field(default_factory=list)
    url: str = ""
    opened: ExitStack = field(default_factory=ExitStack)
    """What a test has opened to it."""

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if method in self.fails:
            return 500, {"errors": ["Internal server error."]}
        if method == "PUT" and path == f"/jobs/{self.job}/resource-requirements":
            self._ask(body)
            time.sleep(self.hangs_after_put_s)
            return 200, None
        known = {
            "/jobs/overview": {
                "jobs": [{"jid": self.job, "name": "shop", "state": "RUNNING", "start-time": 1}]
            },
            f"/jobs/{self.job}": self._details(),
            f"/jobs/{self.job}/resource-requirements": {
                vertex: {"parallelism": {"lowerBound": least, "upperBound": most}}
                for vertex, (least, most) in self.bounds.items()
            },
            f"/jobs/{self.job}/checkpoints": {
                "counts": {"in_progress": int(self.checkpoint)},
                "latest": {"completed": None},
            },
            "/taskmanagers": {"taskmanagers": []},
        }
        if path.partition("?")[0].endswith("/metrics"):
            return 200, []
        return (200, known[path]) if path in known else (404, {"errors": ["not found"]})

    def _details(self) -> dict[str, Any]:
        vertices = [
            {
                "id": vertex, "name": name, "status": "RUNNING", "start-time": 1000,
                "parallelism": self.runs[vertex], "maxParallelism": 128, "metrics": {},
            }
            for vertex, name in VERTICES.items()
        ]  # fmt: skip
        plan = {"nodes": [{"id": "b" * 32, "inputs": [{"id": "a" * 32}]}, {"id": "a" * 32}]}
        return {
            "state": "RUNNING", "vertices": vertices, "plan": plan,
            "timestamps": {"RUNNING": 1000},
        }  # fmt: skip

    def _ask(self, body: dict[str, Any]) -> None:
        self.puts.append({VERTICES[v]: one["parallelism"]["upperBound"] for v, one in body.items()})
        for vertex, one in body.items():
            bounds = one["parallelism"]
            self.bounds[vertex] = [bounds["lowerBound"], bounds["upperBound"]]
            if self.rescales:
                self.runs[vertex] = bounds["upperBound"]


@contextmanager
def flink_server() -> Iterator[FlinkServer]:
    """A server on a free port of this machine."""
    flink = FlinkServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer("GET")

        def do_PUT(self) -> None:
            self._answer("PUT")

        def _answer(self, method: str) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = flink.answer(method, self.path, json.loads(text) if text else None)
            content = b"" if answer is None else json.dumps(answer).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:  # whoever asked did not wait
                return

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    flink.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield flink
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
