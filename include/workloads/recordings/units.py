"""Units that users record in, and what they are divided by to give those of the signals."""

from __future__ import annotations

import re
from collections.abc import Mapping

TOTAL = "total"
"""A count since the start instead of a rate: a counter of Prometheus, for example."""

_RATE = {"per_s": 1.0, "per_min": 60.0, "per_h": 3600.0, TOTAL: 1.0}
_COUNT = {"items": 1.0}
_SECONDS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
UNITS: Mapping[str, Mapping[str, float]] = {
    "time": _SECONDS | {"min": 1 / 60, "h": 1 / 3600},
    "arrivals_per_s": _RATE,
    "rate_per_s": _RATE,
    "lag_items": _COUNT,
    "latency_s": _SECONDS,
    "cpu_share": {"share": 1.0, "percent": 100.0},
    "instances": _COUNT,
    "desired_instances": _COUNT,
}
"""By signal, and of times: what one writes after the ``@`` of a mapping, and the divisor."""

_ALSO = {
    "per_sec": "per_s", "per_second": "per_s", "per_minute": "per_min", "per_hour": "per_h",
    "items_per_s": "per_s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "milliseconds": "ms", "millis": "ms", "msec": "ms", "microseconds": "us", "nanoseconds": "ns",
    "minutes": "min", "minute": "min", "hours": "h", "hour": "h",
    "pct": "percent", "%": "percent", "ratio": "share", "utilisation": "share",
    "utilization": "share", "records": "items", "messages": "items", "count": "items",
    "counter": TOTAL,
}  # fmt: skip
_KNOWN = sorted({*_ALSO, *(unit for units in UNITS.values() for unit in units)}, key=len)
_SUFFIX = re.compile(rf"^(.*?)[_ .(\[/-]+({'|'.join(map(re.escape, _KNOWN))})[)\]]?$")

NEEDS_UNIT = {"latency_s"}
"""Signals that are recorded in several units so often that none is presumed."""


def unit_named(text: str) -> str:
    """The unit by its usual name; the text itself when it is none that is known."""
    return _ALSO.get(text.lower(), text.lower())


def stem_and_unit(column: str) -> tuple[str, str]:
    """A column's name without the unit at its end, and that unit ("" when it names none)."""
    name = column.strip().lower()
    match = _SUFFIX.match(name)
    return (match[1], unit_named(match[2])) if match else (name, "")


def known_units(signal: str) -> str:
    """The units of a signal, as a message lists them."""
    return ", ".join(f"@{unit}" for unit in UNITS[signal])
