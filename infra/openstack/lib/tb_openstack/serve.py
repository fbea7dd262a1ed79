"""Serves an OpenStack API with waitress, in one process with threads, after the faults."""

from __future__ import annotations

import importlib
import json
import logging
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from tb_openstack import faults


def main(name: str, port: str, module: str) -> None:
    """Serve the WSGI application of a module until the process ends."""
    sys.argv = [name]  # nova and neutron pass it to oslo.config at import
    application = importlib.import_module(module).application

    import waitress

    log = logging.getLogger("tb.access")
    log.propagate = False
    log.setLevel(logging.INFO)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter(f"%(asctime)s {name} %(message)s"))
    log.addHandler(handler)

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        asked = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        began_s, answered = time.monotonic(), ["-"]

        def start(status: str, headers: Any, trouble: Any = None) -> Any:
            answered[0] = status
            return start_response(status, headers, trouble)

        rule = faults.pick(name, asked)
        try:
            time.sleep(rule.get("delay", 0))
            answer = _refuse(rule, start) if "status" in rule else application(environ, start)
            time.sleep(rule.get("late", 0))
            return answer
        finally:
            ms = 1000 * (time.monotonic() - began_s)
            log.info("%s %s %dms%s", asked, answered[0], ms, " FAULT" if rule else "")

    address = f"127.0.0.1:{port}"
    waitress.serve(serve, listen=address, threads=16, ident=name, channel_timeout=600, _quiet=True)


def _refuse(rule: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
    headers = [("Content-Type", "application/json")]
    if "retry_after" in rule:
        headers.append(("Retry-After", str(rule["retry_after"])))
    start(f"{rule['status']} On Demand", headers)
    message = rule.get("message", "a fault on demand")
    body = {"error": {"code": rule["status"], "title": "On Demand", "message": message}}
    return [json.dumps(body).encode()]
