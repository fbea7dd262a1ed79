"""An HTTP server on this machine that answers as a test says."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Answer = Callable[[BaseHTTPRequestHandler, bytes], object]
"""Answers a request, whose body has been read."""


@contextmanager
def serving(answer: Answer, certificate: Path | None = None) -> Iterator[int]:
    """Its port, on 127.0.0.1 until the end; over TLS with a file of certificate and key."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else the body waits for 40 ms, until the headers are acknowledged.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            answer(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def do_PUT(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def sends(
    handler: BaseHTTPRequestHandler,
    status: int,
    content: bytes,
    headers: Mapping[str, str] | None = None,
    length: int = 0,
) -> bool:
    """An answer that says it has ``length`` bytes, as many as there are unless it is given."""
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(length or len(content)))
    handler.end_headers()
    handler.wfile.write(content)
    return True
