"""Health of an instance, and the page that shows it."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from include.testbeds.live.operators.wire import US_PER_S, now_us


@dataclass(slots=True)
class Health:
    """State of an instance, written only by its working thread."""

    operator: str
    instance: str
    slo_ms: float
    ready: bool = False
    processed: int = 0
    last_done_us: int = 0
    last_duration_ms: float = 0.0

    def page(self) -> dict[str, Any]:
        """Content of ``/health``; values that need an item are absent before the first."""
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
    """Serve ``/health`` in a daemon thread: status 200 if ready, else 503."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_health = self.path == "/health"
            body = json.dumps(health.page() if is_health else {"error": "ask for /health"}).encode()
            self.send_response((200 if health.ready else 503) if is_health else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name in http.server)
            pass

    server = ThreadingHTTPServer(("", port), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
