"""Readings of a running Prometheus, over its HTTP API, of a bounded range."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

from include.model.errors import SpecError
from include.workloads.recordings.mapping import Reads, with_unit
from include.workloads.recordings.prometheus import read_range
from include.workloads.recordings.series import Samples, asked_series

SCHEMES = ("prometheus+http", "prometheus+https")
MOST_POINTS = 11_000
"""Of one series; Prometheus itself answers no more."""
MOST_BYTES = 50_000_000
TIMEOUT_S = 30.0
_USAGE = (
    "write prometheus+http://HOST:9090?start=2026-01-31T10:00:00Z&end=2026-01-31T16:00:00Z&step=15"
)


def is_server(source: str) -> bool:
    """Whether a source is a server of Prometheus."""
    return source.split("://", 1)[0].lower() in SCHEMES and "://" in source


def read_server(source: str, mapping: Mapping[str, str]) -> tuple[str, dict[Reads, Samples]]:
    """The name of the recording, and one series per signal. Raises SpecError with all problems."""
    url, asked_range = _parsed(source)
    reads, problems = asked_series(mapping)
    if not reads and not problems:
        problems.append("map every signal to a query: --map 'rate=sum(rate(records_total[1m]))'")
    if problems:
        raise SpecError(url, problems)
    samples: dict[Reads, Samples] = {}
    for read in reads:
        try:
            answer = prometheus_answer(url, "query_range", asked_range | {"query": read.column})
            series = read_range(url, answer)
        except SpecError as error:
            problems += [f"{read}: {problem}" for problem in error.problems]
            continue
        if len(series) > 1:
            problems.append(f"{read}: answers {len(series)} series; add them up, as in sum(...)")
        samples[with_unit(read, series[0].metric, problems)] = series[0]
    if problems:
        raise SpecError(url, problems)
    return url, samples


def _parsed(source: str) -> tuple[str, dict[str, str | float]]:
    """Which server to ask, and of which range: epoch seconds, and seconds between points. No
    message repeats what may be a password."""
    kind = "Prometheus"
    if os.environ.get("TIDEBENCH_INPUTS"):
        raise SpecError(kind, ["TIDEBENCH_INPUTS limits inputs to files; save the answer in one"])
    try:
        parts = urlsplit(source)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise SpecError(kind, [f"this is no address of a server; {_USAGE}"]) from None
    if not host:
        raise SpecError(kind, [f"this names no host; {_USAGE}"])
    scheme = parts.scheme.removeprefix("prometheus+")
    shown = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    problems = []
    if "@" in parts.netloc:
        problems.append(
            "credentials do not belong into addresses; set TIDEBENCH_PROMETHEUS_TOKEN, or "
            "TIDEBENCH_PROMETHEUS_USER and TIDEBENCH_PROMETHEUS_PASSWORD"
        )
    options = dict(parse_qsl(parts.query))
    unknown = sorted(set(options) - {"start", "end", "step", "last_s"})
    if unknown:
        problems.append(f"unknown in the address: {', '.join(unknown)}; {_USAGE}")
    values = {
        name: _number(name, options[name], problems) for name in options if name not in unknown
    }
    step_s = values.get("step", 15.0)
    end_s = values.get("end", float(math.floor(time.time())))
    start_s = values.get("start", end_s - values.get("last_s", math.nan))
    if not problems and math.isnan(start_s):
        problems.append(f"no range: {_USAGE}, or ?last_s=21600 for the last six hours")
    if not problems:
        problems += _range_problems(start_s, end_s, step_s)
    if problems:
        raise SpecError(url, problems)
    return url, {"start": start_s, "end": end_s, "step": step_s}


def _number(name: str, text: str, problems: list[str]) -> float:
    try:
        value = float(text)
    except ValueError:
        try:
            at = datetime.fromisoformat(text.replace(" ", "+"))  # a plus of an address is a space
        except ValueError:
            at = None
        if at is None or name in ("step", "last_s"):
            problems.append(f"{name} must be a number of seconds or an ISO time, got {text!r:.40}")
            return math.nan
        value = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(value):
        problems.append(f"{name} must be a number of seconds, got {text!r:.40}")
    return value


def _range_problems(start_s: float, end_s: float, step_s: float) -> list[str]:
    if not step_s > 0:
        return [f"step must be above 0, got {step_s:g}"]
    if not end_s > start_s:
        return ["end must come after start"]
    points = (end_s - start_s) / step_s + 1
    if points > MOST_POINTS:
        least = math.ceil((end_s - start_s) / (MOST_POINTS - 1))
        much = f"{points:.0f} points are more than {MOST_POINTS}"
        return [f"{much}; take a step of at least {least} s, or a shorter range"]
    return []


def prometheus_answer(
    url: str, what: str, params: Mapping[str, str | float], timeout_s: float = TIMEOUT_S
) -> str:
    """What the server answers; redirects are not followed, so nobody else is told a token.
    Raises SpecError."""
    import httpx

    give_up_s = time.monotonic() + 2 * timeout_s
    body = bytearray()
    try:
        with (
            httpx.Client(timeout=timeout_s, auth=_auth(), headers=_headers()) as client,
            client.stream("GET", f"{url}/api/v1/{what}", params=dict(params)) as answer,
        ):
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > MOST_BYTES or time.monotonic() > give_up_s:
                    much = f"{MOST_BYTES // 1_000_000} MB or {2 * timeout_s:g} s"
                    raise SpecError(url, [f"answers more than {much}; take a larger step"])
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SpecError(
            url,
            [f"does not answer ({type(error).__name__}); check the address and that it runs"],
        ) from None
    if answer.status_code in (401, 403):
        hint = "set TIDEBENCH_PROMETHEUS_TOKEN, or TIDEBENCH_PROMETHEUS_USER and _PASSWORD"
        raise SpecError(url, [f"refuses (HTTP {answer.status_code}); {hint}"])
    if answer.status_code not in (200, 400, 422, 503):  # the others say why, in JSON
        problem = (
            f"answers with HTTP {answer.status_code}; check that it is the address of Prometheus"
        )
        raise SpecError(url, [problem])
    return body.decode("utf-8", errors="replace")


def _auth() -> tuple[str, str] | None:
    user = os.environ.get("TIDEBENCH_PROMETHEUS_USER", "")
    password = os.environ.get("TIDEBENCH_PROMETHEUS_PASSWORD", "")
    return (user, password) if user else None


def _headers() -> dict[str, str]:
    token = os.environ.get("TIDEBENCH_PROMETHEUS_TOKEN", "")
    if not (token.isascii() and token.isprintable()):
        hint = "has a line end or letters that no token has; set it again"
        raise SpecError("TIDEBENCH_PROMETHEUS_TOKEN", [hint])
    return {"Authorization": f"Bearer {token}"} if token else {}
