"""Series of Prometheus: OpenMetrics text, and the JSON of a range query."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from include.model.errors import SpecError
from include.workloads.recordings.series import Samples

_ASK = "ask /api/v1/query_range for a range"


def series_in(path: Path, text: str) -> list[Samples] | None:
    """The series of a file that has some, by its name or how it begins; None of another one."""
    text = text.removeprefix("\ufeff")
    kind, start = path.suffix.lower(), text.lstrip()
    if kind == ".json" or start.startswith(("{", "[")):
        return read_range(path.name, text)
    if kind in (".om", ".prom", ".openmetrics") or re.match(r"# (TYPE|HELP|UNIT|EOF)\b", start):
        return read_openmetrics(path.name, text)
    return None


def read_openmetrics(name: str, text: str) -> list[Samples]:
    """The series of OpenMetrics text whose samples have timestamps. Raises SpecError."""
    series: dict[tuple[str, tuple[tuple[str, str], ...]], dict[float, float]] = {}
    counters = set()
    without = 0
    for kind, sample in _openmetrics_samples(name, text):
        if sample.timestamp is None:
            without += 1
            continue
        key = (sample.name, tuple(sorted(sample.labels.items())))
        series.setdefault(key, {})[float(sample.timestamp)] = _value(sample.value)
        if kind == "counter" and sample.name.endswith("_total"):
            counters.add(key)
    if without:
        problem = f"{without} samples have no timestamp; export them with the time of each"
        raise SpecError(name, [problem])
    if not series:
        raise SpecError(name, ["there is no sample; check what was exported"])
    return [
        Samples(metric, dict(labels), values, (metric, labels) in counters)
        for (metric, labels), values in series.items()
    ]


def _openmetrics_samples(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """The type of a sample's family, and the sample."""
    from prometheus_client.openmetrics import parser

    families: Any = parser.text_fd_to_metric_families
    at = 0

    def lines() -> Iterator[str]:
        nonlocal at
        for line in io.StringIO(text, newline=None):  # as a file: labels may have other line ends
            at += 1
            yield line

    try:
        for family in families(lines()):
            yield from ((family.type, sample) for sample in family.samples)
    except (ValueError, KeyError, IndexError) as error:
        if "EOF" in str(error):
            problem = "does not end in # EOF; it was cut off, or write that as its last line"
        else:
            problem = f"line {at} is no OpenMetrics: {error}"
        raise SpecError(name, [problem]) from None


def read_range(name: str, text: str) -> list[Samples]:
    """The series of the response to a range query. Raises SpecError."""
    try:
        response = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise SpecError(name, [f"cannot be read as JSON: {error}"]) from None
    if not isinstance(response, dict) or "status" not in response:
        problem = f"is no response of Prometheus; {_ASK}, and save what it answers"
        raise SpecError(name, [problem])
    if response["status"] != "success":
        reason = f"{response.get('errorType', 'error')}: {response.get('error', 'no reason given')}"
        raise SpecError(
            name, [f"Prometheus answered with an error ({_text(reason):.300}); ask again"]
        )
    data = response.get("data")
    data = data if isinstance(data, dict) else {}
    kind = data.get("resultType")
    if kind != "matrix":
        raise SpecError(name, [f"the result is {_text(kind)} and no matrix; {_ASK}"])
    result = data.get("result")
    if result == []:
        raise SpecError(name, ["the result is empty; check the query and its range"])
    if not isinstance(result, list):
        raise SpecError(name, [f"the answer has no list of series; {_ASK}, and save it unchanged"])
    try:
        return [_samples(one) for one in result]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        problem = f"a series is not as Prometheus writes it ({error}); save its answer unchanged"
        raise SpecError(name, [problem]) from None


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _samples(one: dict[str, Any]) -> Samples:
    labels = {_text(key): _text(value) for key, value in one["metric"].items()}
    values = {}
    for at, value in one["values"]:
        if not math.isfinite(at := float(at)):
            raise ValueError("a time that is no number")
        if at in values:
            raise ValueError(f"two values at {at:.15g}")
        values[at] = _value(value)
    return Samples(labels.pop("__name__", ""), labels, values)


def _value(value: Any) -> float:
    """What was read; nothing where Prometheus has divided by 0, which gives NaN or an infinity."""
    number = float(value)
    return number if math.isfinite(number) else math.nan


def _text(value: Any) -> str:
    """Text that can be printed, also of half a character."""
    return str(value).encode("utf-8", "backslashreplace").decode()
