"""How an instance is, and the page that says so."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from include.testbeds.live.operators.wire import US_PER_S, now_us


@dataclass(slots=True)
class Health:
    """What an instance knows of itself; written by its one working thread only."""

    operator: str
    instance: str
    slo_ms: float
    ready: bool = False
    processed: int = 0
    last_done_us: int = 0
    last_duration_ms: float = 0.0

    def page(self) -> dict[str, Any]:
        """What ``/health`` answers; what there was no item for yet is absent."""
        page: dict[str, Any] = {
            "ready": self.ready,
            "operator": self.operator,
            "instance": self.instance,
            "processed_items": self.processed,
        }
        if self.processed:
            page["last_item_age_s"] = (now_us() - self.last_done_us) / US_PER_S
            page["last_duration_ms"] = self.last_duration_ms
            page["last_within_slo"] = self.last_duration_ms <= self.slo_ms
        return page


def serve(health: Health, port: int) -> ThreadingHTTPServer:
    """Answer ``/health`` in a thread that ends with the process: 200 when ready, else 503."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/health"
            body = json.dumps(health.page() if found else {"error": "ask for /health"}).encode()
            self.send_response((200 if health.ready else 503) if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name in http.server)
            pass

    server = ThreadingHTTPServer(("", port), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
