"""Structured logs: one JSON object per line on standard output, without payloads or secrets."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any, TextIO


class Log:
    """Writes events with the same names in front of every one."""

    def __init__(self, stream: TextIO | None = None, **always: Any) -> None:
        self._stream = stream or sys.stdout
        self._always = always

    def __call__(self, event: str, **more: Any) -> None:
        time = datetime.now(tz=UTC).isoformat(timespec="microseconds")
        line = json.dumps({"time": time, "event": event, **self._always, **more}, default=str)
        self._stream.write(line + "\n")
        self._stream.flush()
