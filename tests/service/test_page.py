"""The page, the metrics and the health of a shadow."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from dataclasses import astuple, replace
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from include.files.appended import AppendedRows
from include.model.errors import SetupError, SpecError
from include.service.page import address_of, health_of, lines_of, metrics_of, page_of, served
from include.service.rates import rates_between
from include.service.record import Polling
from include.service.rest import NoSuchJobError
from include.service.shadow import COLUMNS, DECISIONS, asked_controllers
from include.service.shadow_loop import run_shadow
from include.service.status import ShadowStatus, StatusPoint, remembered
from include.service.verdict import decision_counts
from include.testbeds.flink.rest import NoAnswerError
from tests.e2e.browser import NEEDS_CHROMIUM, new_page
from tests.service.acting_world import advised
from tests.service.fake_flink import FakeFlink, answers_500
from tests.service.flink_world import World

VOID = {"meta", "line", "path", "br", "link"}


class Nested(HTMLParser):
    """Raises AssertionError where a tag closes that is not open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture
def status(world: World) -> ShadowStatus:
    """After two polls; hpa would scale, ds2 has failed."""
    status = ShadowStatus("orders & <co>", "http://127.0.0.1:8081", 15)
    now = world.after(15)
    at = {"time_s": now.at_s}
    scales = advised("map", 3, controller="hpa", because="map uses <95 %> of its CPU", **at)
    fails = advised("map", 2, controller="ds2", because="broke", failed=True, **at)
    status.polled(now, None, {})
    status.polled(now, None, {"hpa": [scales], "ds2": [fails]})
    return status


def test_a_page_without_a_reading_says_so() -> None:
    page = page_of(ShadowStatus("orders", "http://h", 15, trouble="nobody is there"), 1.8e9)
    Nested(page)
    assert "No reading yet: nobody is there" in page
    assert "<svg" not in page, "no figure of nothing"
    assert "No controller has decided yet." in page
    assert "Decisions" not in page


def test_the_page_says_what_is_what_each_would_and_why(status: ShadowStatus) -> None:
    page = page_of(status, status.reading.at_s + 60)
    Nested(page)
    assert "orders &amp; &lt;co&gt;" in page
    assert "map uses &lt;95 %&gt; of its CPU" in page
    assert '<td class="n up">3</td>' in page
    assert "failed: broke" in page
    assert "ds2 1 (failed 1)" in page


@NEEDS_CHROMIUM
def test_a_long_address_does_not_widen_the_page_of_a_phone(status: ShadowStatus) -> None:
    status.url = "http://jobmanager.production.svc.cluster.local:8081"
    with new_page(viewport={"width": 390, "height": 844}) as page:
        page.set_content(page_of(status, status.reading.at_s + 60))
        assert page.evaluate("document.scrollingElement.scrollWidth") == 390


def test_lines_have_changes_only() -> None:
    day = [StatusPoint(1000.0 + i, "hpa", 2, 2 if i < 50 else 4) for i in range(100)]
    lines = lines_of(day, 1100.0)
    assert lines["most"] == 4
    assert lines["wanted"][0][2].count("V") == 1
    assert '="M0 2H100"' in lines["runs"]


def test_metrics_are_what_prometheus_reads(status: ShadowStatus) -> None:
    families = {
        family.name: family
        for family in text_string_to_metric_families(metrics_of(status).decode())
    }
    wanted = families["tidebench_shadow_wanted_instances"].samples
    assert {(one.labels["controller"], one.value) for one in wanted} == {("hpa", 3), ("ds2", 2)}
    assert families["tidebench_shadow_polls"].samples[0].value == 2
    assert families["tidebench_shadow_failures"].samples[0].labels == {"controller": "ds2"}
    assert "tidebench_shadow_lag_records" not in families, "absent is never zero"


def samples(status: ShadowStatus) -> set[str]:
    """Names of those that metrics have."""
    families = text_string_to_metric_families(metrics_of(status).decode())
    return {one.name.removeprefix("tidebench_shadow_") for of in families for one in of.samples}


def test_what_is_not_known_of_the_job_has_no_sample(world: World) -> None:
    status = ShadowStatus("orders", "http://127.0.0.1:8081", 15)
    known = {"instances", "records_per_second", "lag_records", "latency_seconds", "busy_ratio"}
    before = world.after(15)
    now = world.after(15)
    rates = rates_between(before, now)

    status.polled(now, rates, {})
    assert known <= samples(status)
    status.polled(replace(now, at_s=now.at_s + 15), None, {})  # Flink has not fetched since
    assert known <= samples(status)
    status.unread(NoAnswerError("Flink does not answer"))
    assert not known & samples(status)
    status.polled(replace(now, at_s=now.at_s + 45), None, {})
    assert known <= samples(status)
    status.polled(replace(now, at_s=now.at_s + 75), None, {})
    assert known & samples(status) == {"instances"}, "it never fetches again"

    status.polled(now, rates, {})
    assert '<td class="n">2</td>' in page_of(status, now.at_s)
    status.polled(replace(now, state="FAILED", started_s=0.0), None, {})
    assert not known & samples(status)
    assert '<td class="n">2</td>' not in page_of(status, now.at_s)
    status.polled(now, None, {})
    assert known & samples(status) == {"instances"}

    status.polled(now, rates, {})
    status.read_up_s -= 100  # the loop hangs, or cannot write
    assert not known & samples(status)


def test_health_is_that_the_loop_turns(status: ShadowStatus) -> None:
    status.turned()
    assert health_of(status, status.turned_up_s + 59)[0] == 200, "a poll may take long"
    status.unread(NoAnswerError("Flink does not answer"))
    code, body = health_of(status, status.turned_up_s)
    assert (code, json.loads(body)["flink_answers"]) == (200, False)
    assert health_of(status, status.turned_up_s + 61)[0] == 503


def test_a_flink_that_answers_and_has_no_such_job_is_told_from_one_that_is_silent(
    status: ShadowStatus,
) -> None:
    def health() -> tuple[bool, bool]:
        about = json.loads(health_of(status, status.turned_up_s)[1])
        return about["flink_answers"], about["job_missing"]

    assert health() == (True, False)
    status.unread(NoSuchJobError("Flink has no job 'orders'"))
    assert health() == (True, True)
    assert "instances" not in samples(status)
    assert "as last read: Flink has no job &#39;orders&#39;" in page_of(status, 1.8e9)
    status.unread(NoAnswerError("Flink does not answer"))
    assert health() == (False, False)


@pytest.mark.parametrize("by_s", [60, -3600])
def test_a_clock_that_is_set_changes_no_health(
    status: ShadowStatus, monkeypatch: pytest.MonkeyPatch, by_s: float
) -> None:
    status.turned()
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + by_s)
    with served(status, "0") as where:
        with urllib.request.urlopen(f"{where}/healthz", timeout=10) as answer:
            assert answer.status == 200
        status.turned_up_s -= 61
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"{where}/healthz", timeout=10)


@pytest.mark.parametrize(("path", "code"), [("/", 200), ("/metrics", 200), ("/away", 404)])
def test_head_is_the_answer_of_get_without_its_body(
    status: ShadowStatus, path: str, code: int
) -> None:
    with served(status, "0") as where:
        address = ("127.0.0.1", int(where.rpartition(":")[2]))
        with socket.create_connection(address, timeout=10) as client, client.makefile() as answer:
            client.sendall(f"HEAD {path} HTTP/1.0\r\n\r\n".encode())
            first, *headers = answer.read().splitlines()
    assert f" {code} " in first
    assert "Content-Length: 0" not in headers
    assert headers[-1] == "", "what follows the headers is the body"


def test_a_client_that_goes_away_leaves_no_trace(
    status: ShadowStatus, capfd: pytest.CaptureFixture[str]
) -> None:
    threads = threading.active_count() + 1
    with served(status, "0") as where:
        client = socket.create_connection(("127.0.0.1", int(where.rpartition(":")[2])), timeout=10)
        client.sendall(b"GET")
        reset = struct.pack("ii", 1, 0)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        client.close()
        with urllib.request.urlopen(f"{where}/healthz", timeout=10) as answer:
            assert answer.status == 200
        give_up_s = time.monotonic() + 10
        while threading.active_count() > threads and time.monotonic() < give_up_s:
            time.sleep(0.01)
    assert capfd.readouterr().err == ""


def a_day(folder: Path, decisions: int) -> list[StatusPoint]:
    """Decisions on disk, each of two operators."""
    rows = AppendedRows(folder / DECISIONS, COLUMNS)
    for i in range(decisions):
        usual = {"controller": "hpa", "time_s": 1000.0 + i}
        rows.append(astuple(advised(name, 3, **usual)) for name in ("map", "sink"))
    rows.close()
    return [StatusPoint(1000.0 + i, "hpa", 4, 6) for i in range(decisions)]


def test_a_torn_row_of_decisions_is_left_out(tmp_path: Path) -> None:
    """It was killed while it wrote."""
    points = a_day(tmp_path, 3)
    with (tmp_path / DECISIONS).open("a") as file:
        file.write("1003.0,hpa,map,2")
    assert remembered(tmp_path, 0.0) == points
    assert remembered(tmp_path, 1001.0) == points[1:]
    assert decision_counts(tmp_path / DECISIONS) == {"hpa": (3, 3, 0)}


def test_only_the_end_of_many_decisions_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = a_day(tmp_path, 100)
    for size_bytes in range(1000, 1400, 7):
        monkeypatch.setattr("include.service.status.LAST_BYTES", size_bytes)
        found = remembered(tmp_path, 0.0)
        assert 2 < len(found) < 20
        assert found == points[-len(found) :], "whole decisions"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8077", ("127.0.0.1", 8077)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        (":80", ("127.0.0.1", 80)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_the_page_is_on_loopback_unless_told(text: str, expected: tuple[str, int]) -> None:
    assert address_of(text) == expected


def test_the_page_may_be_at_an_address_of_ipv6(status: ShadowStatus) -> None:
    with served(status, "[::1]:0") as where:
        assert where.startswith("http://[::1]:")
        with urllib.request.urlopen(f"{where}/healthz", timeout=10) as answer:
            assert answer.status == 200


def test_a_wrong_or_taken_address_is_told(status: ShadowStatus) -> None:
    for wrong in ("here", "99999", "²"):
        with pytest.raises(SpecError, match="write PORT or HOST:PORT"):
            address_of(wrong)
    with (
        served(status, "0") as where,
        pytest.raises(SetupError, match="choose another --page"),
        served(status, where.rpartition(":")[2]),
    ):
        pass


def test_a_shadow_over_http_from_the_first_poll_to_its_page(
    tmp_path: Path, flink: FakeFlink
) -> None:
    told: list[str] = []
    pages: dict[str, tuple[int, str]] = {}
    stop = threading.Event()
    polls = 0

    def fault(handler: BaseHTTPRequestHandler) -> bool:
        nonlocal polls
        if handler.path == "/jobs/overview":
            polls += 1
            flink.world.advance(15)
        return polls == 5 and answers_500(handler)

    def look() -> None:
        while not any(line.startswith("Page: ") for line in told) or polls < 10:
            time.sleep(0.1)
        where = next(line for line in told if line.startswith("Page: ")).removeprefix("Page: ")
        for path in ("/", "/metrics", "/healthz", "/etc/passwd"):
            try:
                with urllib.request.urlopen(where + path, timeout=10) as answer:
                    pages[path] = answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                pages[path] = error.code, ""
                error.close()
        stop.set()

    flink.fault = fault
    looks = threading.Thread(target=look)
    looks.start()
    run_shadow(
        Polling(
            url=flink.url, job="orders", every_s=1, lasts_s=120, stop=stop, told=told.append
        ),
        tmp_path, controllers=asked_controllers(["hpa", "tide"], {}), prices="btu60",
        objective="latency p95 < 2 s", most_slots=0, page="0", advised=told.append,
    )  # fmt: skip
    looks.join(timeout=30)

    Nested(pages["/"][1])
    assert "no operator that was read should have more" in pages["/"][1]
    assert "tidebench_shadow_wanted_instances" in pages["/metrics"][1]
    assert pages["/healthz"][0] == 200
    assert pages["/etc/passwd"][0] == 404
    assert any("it is broken" in line for line in told)
    points = remembered(tmp_path, 0.0)
    assert {point.controller for point in points} == {"hpa", "tide"}
    assert all(point.instances == 4 for point in points)
