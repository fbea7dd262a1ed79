"""The page of a service that acts: what it changed, and the switch that stops it."""

from __future__ import annotations

import time
import urllib.error
import urllib.request

import pytest

from include.service.act import Actor
from include.service.page import metrics_of, page_of, served
from include.service.pause import pause, why_paused
from include.service.status import ShadowStatus


@pytest.fixture
def status(flink, acting):
    """After one step in which `map` is scaled."""
    service = acting()
    service.why = "it is <late>"
    service.actor.begin()
    service.step()
    status = ShadowStatus("orders", flink.url, 15, turned_s=time.time(), actor=service.actor)
    status.polled(service.client.reading("orders"), None, {})
    return status


def thrown(url, path, origin):
    request = urllib.request.Request(url + path, data=b"", headers={"Origin": origin})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def test_the_page_says_what_was_changed_and_why(status):
    page = page_of(status, time.time())
    assert "asks for map 2 -&gt; 3 (it is &lt;late&gt;)" in page
    assert "tide may change the job" in page
    assert "Stop all changes" in page


def test_the_switch_stops_and_allows_changes(status, tmp_path):
    with served(status, "0") as url:
        page = thrown(url, "/pause", url)
        assert "Allow changes again" in page
        assert "tide may not change the job: it is paused." in page
        assert "on the page" in why_paused(tmp_path)
        assert "Stop all changes" in thrown(url, "/resume", url)
        assert why_paused(tmp_path) == ""


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_a_page_of_somebody_else_cannot_throw_it(status, tmp_path, origin):
    with served(status, "0") as url, pytest.raises(urllib.error.HTTPError, match="403"):
        thrown(url, "/pause", origin)
    assert why_paused(tmp_path) == ""


def test_where_others_can_reach_the_page_there_is_no_switch(status, tmp_path):
    with served(status, "0.0.0.0:0") as url, pytest.raises(urllib.error.HTTPError, match="403"):
        thrown(url.replace("0.0.0.0", "127.0.0.1"), "/pause", url.replace("0.0.0.0", "127.0.0.1"))
    assert why_paused(tmp_path) == ""


def test_a_shadow_has_no_switch(status, tmp_path):
    status.actor = None
    assert "Stop all changes" not in page_of(status, time.time())
    with served(status, "0") as url, pytest.raises(urllib.error.HTTPError, match="404"):
        thrown(url, "/pause", url)


def test_prometheus_sees_what_was_changed_and_that_it_is_paused(status, tmp_path):
    """The journal of a service before counts, too: counters go on after a kill."""
    status.actor = Actor(status.actor.mandate, status.actor._flink)
    status.actor.begin()
    for paused in (0.0, 1.0):
        lines = metrics_of(status).decode().splitlines()
        assert 'tidebench_act_entries_total{kind="asks"} 1.0' in lines
        assert 'tidebench_act_entries_total{kind="began"} 2.0' in lines
        assert "tidebench_act_failed_in_a_row 0.0" in lines
        assert f"tidebench_act_paused {paused}" in lines
        pause(tmp_path, "by a test")
