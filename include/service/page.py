"""The page of the service, its metrics for Prometheus, and whether it is well.

Who may see it is who can reach the address: 127.0.0.1 unless told. It reads only, but for the
switch that stops the changes of a service that acts, which is there on 127.0.0.1 alone.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from typing import Any

from markupsafe import Markup
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from include.model.errors import SetupError, SpecError
from include.results.reports.figures.frame import Panel, line, step_path
from include.results.templates import templates_in
from include.service.journal import sentence
from include.service.pause import pause, resume, why_paused
from include.service.rates import JobRates
from include.service.status import DAY_S, ShadowStatus, StatusPoint

HERE = Path(__file__).parent
LOOPBACK = "127.0.0.1"
LOCAL = (LOOPBACK, "localhost")
WIDE, HIGH = 900.0, 220.0
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
"""Okabe and Ito: told apart by those who see fewer colours."""
TEXT, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def address_of(text: str) -> tuple[str, int]:
    """Host and port of ``PORT`` or ``HOST:PORT``. Raises SpecError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not int(port) < 65536:
        raise SpecError("--page", [f"write PORT or HOST:PORT, such as 8077, got {text!r}"])
    return host.strip("[]") or LOOPBACK, int(port)


def page_of(status: ShadowStatus, now_s: float) -> str:
    """The page as HTML."""
    templates = templates_in(HERE, HERE.parent / "results" / "reports")
    templates.filters["clock"] = _clock
    templates.filters["sentence"] = sentence
    actor = status.actor
    return templates.get_template("page.html.j2").render(
        status=status,
        now_s=now_s,
        lines=lines_of(list(status.day), now_s),
        wide=WIDE,
        high=HIGH,
        paused=why_paused(actor.mandate.state) if actor else "",
        entries=list(actor.recent)[::-1] if actor else [],
    )


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def lines_of(day: Sequence[StatusPoint], now_s: float) -> dict[str, Any]:
    """What runs and what each controller wanted over the last day, as lines of an SVG."""
    since_s = max(now_s - DAY_S, min((point.at_s for point in day), default=now_s))
    most = max((max(point.wanted, point.instances) for point in day), default=1)
    length_s = max(1.0, now_s - since_s)
    panel = Panel((WIDE / length_s, -(HIGH - 8) / max(1, most)), (0.0, HIGH))

    def drawn(colour: str, width: float, points: Sequence[tuple[float, int]]) -> Markup:
        if not points:
            return Markup()
        until_now = [*points, (now_s, points[-1][1])]
        steps = step_path([(at_s - since_s, value) for at_s, value in until_now])
        return Markup(panel.holding(line(colour, width, steps)))

    wanted: dict[str, list[tuple[float, int]]] = {}
    for point in day:
        wanted.setdefault(point.controller, []).append((point.at_s, point.wanted))
    return {
        "since_s": since_s,
        "most": most,
        "runs": drawn("currentColor", 2.5, sorted((point.at_s, point.instances) for point in day)),
        "wanted": [
            (name, colour, drawn(colour, 1.5, points))
            for (name, points), colour in zip(wanted.items(), cycle(COLOURS), strict=False)
        ],
    }


class _Collector(Collector):
    """Metrics of one status."""

    def __init__(self, status: ShadowStatus) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status, actor, now = self._status, self._status.actor, self._status.reading
        yield _gauge("shadow_flink_answers", "1 if Flink answered the last poll.", status.answered)
        missing = "1 if Flink has no job of that name."
        yield _gauge("shadow_job_missing", missing, status.job_missing)
        yield _gauge("shadow_last_turn_timestamp_seconds", "The last poll.", status.turned_s)
        polls = {"yes": status.polls, "no": status.missed}
        yield _counter("shadow_polls", "Polls, by whether they gave a reading.", "answered", polls)
        decided = "Decisions of a controller."
        yield _counter("shadow_decisions", decided, "controller", status.decided)
        failures = "Decisions in which a controller failed."
        yield _counter("shadow_failures", failures, "controller", status.failed)
        if actor is not None:
            entries = dict(sorted(actor.written.items()))
            yield _counter("act_entries", "Entries of the journal.", "kind", entries)
            failed = "Last changes that did not come up."
            yield _gauge("act_failed_in_a_row", failed, actor.history.failures)
            paused = why_paused(actor.mandate.state) != ""
            yield _gauge("act_paused", "1 while it is paused.", paused)
        if now is not None and status.is_current and now.running:
            runs = "Subtasks of an operator that run."
            counts = {(name,): count for name, count in now.instances.items()}
            yield _gauge("shadow_instances", runs, counts, ["operator"])
            yield from _rates(status.rates)
        if now is not None:
            wanted = "Subtasks of an operator that a controller wanted at its last decision."
            rows = [row for rows in status.advised.values() for row in rows]
            last = {(row.controller, row.operator): row.wanted for row in rows}
            yield _gauge("shadow_wanted_instances", wanted, last, ["controller", "operator"])


def _gauge(
    name: str, description: str, values: float | Mapping[Any, float], labels: Sequence[str] = ()
) -> Metric:
    """A value, or one by its ``labels``."""
    family = GaugeMetricFamily(f"tidebench_{name}", description, labels=labels)
    for of, value in values.items() if isinstance(values, Mapping) else [((), values)]:
        family.add_metric(of, value)
    return family


def _counter(name: str, description: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"tidebench_{name}", description, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family


def _rates(rates: JobRates | None) -> Iterator[Metric]:
    """Of the job; what is not known has no sample."""
    for name, description, of in (
        ("records_per_second", "Records that sources take in.", "rate_per_s"),
        ("lag_records", "Records that wait for sources.", "lag_records"),
        ("latency_seconds", "Estimate of the way through the job.", "latency_s"),
        ("busy_ratio", "Busy share of the busiest operator.", "busy_share"),
    ):
        if (value := getattr(rates, of, None)) is not None:
            yield _gauge(f"shadow_{name}", description, value)


def metrics_of(status: ShadowStatus) -> bytes:
    """In the text format of Prometheus."""
    return generate_latest(_Collector(status))


def health_of(status: ShadowStatus, up_s: float) -> tuple[int, bytes]:
    """200 while the loop turns, else 503; and what is to be known, as JSON.

    ``up_s`` is a time of ``time.monotonic``.
    """
    well = status.is_well(up_s)
    about = {
        "status": "ok" if well else "the loop does not turn",
        "flink": status.url,
        "flink_answers": status.answered,
        "job_missing": status.job_missing,
        "seconds_since_last_turn": round(up_s - status.turned_up_s, 1),
    }
    if status.moved_s:
        about["flink_moved"] = f"{_clock(status.moved_s)} UTC"
    return (200 if well else 503), json.dumps(about).encode() + b"\n"


class PageServer(ThreadingHTTPServer):
    """At an address of IPv6, too. A client that goes away leaves no trace in the terminal."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def served(status: ShadowStatus, address: str) -> Iterator[str]:
    """Serve until the end, and yield where; nothing with an empty address.

    Raises SpecError for what is no address, SetupError when nobody can listen there.
    """
    if not address:
        yield ""
        return
    host, port = address_of(address)
    shown = f"[{host}]" if ":" in host else host
    try:
        server = PageServer((host, port), _handler(status, host))
    except OSError as error:
        problem = f"{shown}:{port} cannot be listened on ({error.strerror}); choose another --page"
        raise SetupError(problem) from error
    thread = threading.Thread(target=server.serve_forever, args=(0.5,), daemon=True)
    thread.start()
    try:
        yield f"http://{shown}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def thrown(status: ShadowStatus, path: str, *, ours: bool) -> tuple[int, str]:
    """The switch at ``path``: a code of HTTP, and what is to be said.

    ``ours``: a browser says that the page is this one, and it is on this machine.
    """
    if status.actor is None or path not in ("/pause", "/resume"):
        return 404, "there is no switch"
    if not ours:
        return 403, f"the switch is on {LOOPBACK} alone; there is tidebench {path[1:]}, too"
    try:
        if path == "/pause":
            pause(status.actor.mandate.state, "on the page")
        else:
            resume(status.actor.mandate.state)
    except SetupError as error:
        return 500, str(error)
    return 303, ""


def page_at(path: str, status: ShadowStatus) -> tuple[int, str, bytes]:
    """A code of HTTP, the type of the content, and the content."""
    match path:
        case "/":
            return 200, HTML, page_of(status, time.time()).encode()
        case "/metrics":
            return 200, TEXT, metrics_of(status)
        case "/healthz":
            code, body = health_of(status, time.monotonic())
            return code, "application/json", body
        case _:
            return 404, TEXT, b"there is /, /metrics and /healthz\n"


def _handler(status: ShadowStatus, host: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # of a client that says nothing

        def do_GET(self) -> None:
            self._send(*page_at(self.path.partition("?")[0], status))

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            port = self.connection.getsockname()[1]
            origin = self.headers.get("Origin", "") if host in LOCAL else ""
            ours = origin in [f"http://{name}:{port}" for name in LOCAL]
            code, message = thrown(status, self.path, ours=ours)
            if code == 303:
                self.send_response(code)
                self.send_header("Location", "/")
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self._send(code, TEXT, f"{message}\n".encode())

        def _send(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            for name, value in {**HEADERS, "Content-Type": kind}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        def log_message(self, *_: object) -> None:
            """Requests are not logged."""

    return Handler
