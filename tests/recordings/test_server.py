"""Readings of a real Prometheus, and of servers that do not answer as one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest

from include.model.errors import SpecError
from include.workloads.recordings import read_recording
from tests.http_server import sends, serving
from tests.live.world import wait_until
from tests.prometheus_server import prometheus, query

SECRET = "hunter2"
PER_S = 40
QUERIES = {
    "rate": 'sum(rate(records_total{job="stream"}[5s]))',
    "lag": "lag@items",
    "latency": "latency_ms",
}


Start = Callable[["Serving"], str]


class Serving:
    """Answers everything with what it was told to, and keeps what it was asked."""

    def __init__(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        self.status, self.body, self.headers = status, body, headers
        self.asked: list[tuple[str, str]] = []
        self.began_s = time.monotonic()

    def content(self) -> bytes:
        return self.body

    def __call__(self, handler: BaseHTTPRequestHandler, _: bytes) -> None:
        self.asked.append((handler.path, handler.headers.get("Authorization", "")))
        sends(handler, self.status, self.content(), self.headers)


class Job(Serving):
    """A stream job that works off ``PER_S`` records a second, as it tells Prometheus."""

    def content(self) -> bytes:
        records = (time.monotonic() - self.began_s) * PER_S
        return f"records_total {records:.3f}\nlag 7\nlatency_ms 250\n".encode()


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server; its address."""
    with ExitStack() as servers:
        yield lambda server: f"127.0.0.1:{servers.enter_context(serving(server))}"


@pytest.mark.live
def test_a_range_of_a_real_prometheus_is_read_back(start: Start, tmp_path: Path) -> None:
    target = start(Job())
    with prometheus(tmp_path, target) as address:
        whole = partial(query, address, "count_over_time(lag[1m]) >= 6")  # of six seconds
        end_s = float(wait_until(whole, (tmp_path / "log").read_text, 90)[0]["value"][0])
        found = read_recording(
            f"prometheus+http://{address}?start={end_s - 5}&end={end_s}&step=1", QUERIES
        )
    assert found.name == f"http://{address}"
    assert found.times_s[0] == 0
    assert found.began_at is not None
    assert end_s - 5 <= found.began_at <= end_s
    rate = found.readings["rate_per_s"]
    assert np.nanmean(rate) == pytest.approx(PER_S, rel=0.3)
    assert set(found.readings["lag_items"][~np.isnan(found.readings["lag_items"])]) == {7}
    assert np.nanmax(found.readings["latency_s"]) == 0.25


def refused(source: str, mapping: dict[str, str] | None = None) -> str:
    with pytest.raises(SpecError) as error:
        read_recording(source, {"rate": "up"} if mapping is None else mapping)
    return str(error.value)


def test_credentials_come_from_the_environment_only(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},'
        b'"values":[[0,"1"],[60,"2"]]}]}}'
    )
    server = Serving(body=body)
    address = start(server)
    monkeypatch.setenv("TIDEBENCH_PROMETHEUS_TOKEN", SECRET)
    found = read_recording(f"prometheus+http://{address}?start=0&end=60&step=60", {"rate": "up"})
    assert server.asked[-1][1] == f"Bearer {SECRET}"
    assert SECRET not in repr(found)
    monkeypatch.delenv("TIDEBENCH_PROMETHEUS_TOKEN")
    monkeypatch.setenv("TIDEBENCH_PROMETHEUS_USER", "me")
    monkeypatch.setenv("TIDEBENCH_PROMETHEUS_PASSWORD", SECRET)
    read_recording(f"prometheus+http://{address}?last_s=60", {"rate": "up"})
    assert server.asked[-1][1].startswith("Basic ")
    told = refused(f"prometheus+http://me:{SECRET}@{address}?last_s=60")
    assert "set TIDEBENCH_PROMETHEUS_TOKEN" in told
    assert SECRET not in told


@pytest.mark.parametrize("token", ["geheim\n", "schlüssel", "a\r\nb"])
def test_a_token_that_no_header_can_have_is_told_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("TIDEBENCH_PROMETHEUS_TOKEN", token)
    told = refused("prometheus+http://localhost:1?last_s=60")
    assert "has a line end or letters that no token has; set it again" in told
    assert token not in told


def test_nobody_else_is_told_a_token(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEBENCH_PROMETHEUS_TOKEN", SECRET)
    other = Serving()
    elsewhere = start(other)
    address = start(Serving(302, Location=f"http://{elsewhere}/"))
    assert "HTTP 302" in refused(f"prometheus+http://{address}?last_s=60")
    assert other.asked == []


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b"", "refuses (HTTP 401); set TIDEBENCH_PROMETHEUS_TOKEN"),
        (404, b"", "HTTP 404; check that it is the address"),
        (200, b"<html>", "cannot be read as JSON"),
        (400, b'{"status":"error","errorType":"bad_data","error":"no"}', "(bad_data: no)"),
    ],
)
def test_what_a_server_refuses_is_told(status: int, body: bytes, says: str, start: Start) -> None:
    address = start(Serving(status, body))
    assert says in refused(f"prometheus+http://{address}?last_s=60")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("prometheus+http://localhost:1", "no range: write prometheus+http"),
        ("prometheus+http://?last_s=5", "names no host"),
        ("prometheus+http://localhost:port?last_s=5", "no address of a server"),
        ("prometheus+http://localhost:1?last_s=60&step=0", "step must be above 0"),
        ("prometheus+http://localhost:1?start=5&end=4", "end must come after start"),
        ("prometheus+http://localhost:1?last_s=86400&step=1", "a step of at least 8 s"),
        ("prometheus+http://localhost:1?start=today&end=9", "start must be a number"),
        ("prometheus+http://localhost:1?last_s=inf", "last_s must be a number"),
        ("prometheus+http://localhost:1?since=5", "unknown in the address: since"),
        ("prometheus+http://localhost:1?last_s=60", "does not answer (ConnectError)"),
    ],
)
def test_an_address_that_cannot_be_asked_is_refused(source: str, says: str) -> None:
    assert says in refused(source)


def test_every_signal_needs_a_query() -> None:
    assert "map every signal to a query" in refused("prometheus+http://localhost:1?last_s=5", {})
