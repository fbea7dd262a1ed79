"""The address `testbed`: the job of a run on this machine, also at another port."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.files.whole import csv_rows
from include.model.errors import SpecError
from include.service.page import health_of, page_of
from include.service.record import Recorder
from include.service.rest import NoSuchJobError
from include.service.status import ShadowStatus
from include.service.testbed import TestbedRest, job_of_testbed
from include.testbeds.flink.rest import NoAnswerError
from tests.service.fake_flink import FakeFlink, a_flink, answers_500
from tests.service.flink_world import World

Deploy = Callable[[str, FakeFlink], None]


@pytest.fixture
def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """Writes where the REST interface of a run is, as the testbed does."""
    monkeypatch.setenv("TIDEBENCH_FLINK_STATE", str(tmp_path))

    def deployed(run: str, flink: FakeFlink) -> None:
        config = tmp_path / "runs" / run / "conf" / "config.yaml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f"rest.port: {flink.url.rpartition(':')[2]}\n")

    return deployed


def test_a_job_that_does_not_run_is_told_at_once_with_those_that_do(
    deploy: Deploy, flink: FakeFlink, tmp_path: Path
) -> None:
    deploy("one", flink)
    (tmp_path / "runs/gone/conf/config.yaml").mkdir(parents=True)  # no file (any more)
    assert job_of_testbed("", threading.Event()) == (flink.url, "orders")
    with pytest.raises(SpecError, match="no job order runs there; name one with --job: orders"):
        job_of_testbed("order", threading.Event())
    with a_flink(World(name="clicks")) as other:
        deploy("two", other)
        assert job_of_testbed("clicks", threading.Event()) == (other.url, "clicks")
        with pytest.raises(SpecError, match=r"several jobs run there.*: clicks, orders"):
            job_of_testbed("", threading.Event())


def test_a_run_that_is_deployed_again_is_found_at_its_new_port(deploy: Deploy) -> None:
    with a_flink(World()) as before:
        deploy("one", before)
        flink = TestbedRest(before.url, job="orders", settles_s=0.0)
        assert flink.reading("orders").job == "a" * 32
        flink.close()
    with closing(flink), a_flink(World(job="b" * 32)) as now:
        with pytest.raises(NoAnswerError):
            flink.reading("orders")
        deploy("one", now)
        assert flink.reading("orders").job == "b" * 32
        assert flink.url == now.url


def test_a_job_whose_port_another_took_is_followed_once_it_runs_elsewhere(
    deploy: Deploy, flink: FakeFlink
) -> None:
    with a_flink(World()) as before, closing(TestbedRest(before.url, job="orders")) as client:
        deploy("one", before)
        assert client.reading("orders").url == before.url
        before.world = World(name="clicks", job="b" * 32)
        before.asked.clear()
        for _ in range(2):
            with pytest.raises(NoSuchJobError, match=f"{before.url} has no job 'orders'.*clicks"):
                client.reading("orders")
        deploy("two", flink)
        assert client.reading("orders").url == flink.url
    assert set(before.asked) == {("GET", "/jobs/overview")}


def test_the_address_in_use_is_shown_and_recorded_and_since_when(
    deploy: Deploy, tmp_path: Path, flink: FakeFlink
) -> None:
    with a_flink(World()) as before, closing(TestbedRest(before.url, job="orders")) as client:
        recorder = Recorder(tmp_path / "job", "orders", before.url, 15)
        recorder.begin(0.0)
        status = ShadowStatus("orders", before.url, 15)

        def polled() -> dict[str, object]:
            reading = client.reading("orders")
            recorder.keep(reading)
            status.polled(reading, None, {})
            return json.loads(health_of(status, status.turned_up_s)[1])

        assert polled().items() >= {"flink": before.url}.items()
        assert ", where it is since" not in page_of(status, 1.8e9)
        before.fault = answers_500
        deploy("one", flink)
        for _ in range(2):
            health = polled()
        recorder.end(status.moved_s, 3)

    moved = datetime.fromtimestamp(status.moved_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    assert (health["flink"], health["flink_moved"]) == (flink.url, moved)
    page = page_of(status, status.moved_s)
    assert f"from {flink.url}, where it is since {moved}." in page
    assert before.url not in page
    assert json.loads((tmp_path / "job" / "recording.json").read_text())["url"] == flink.url
    rows = csv_rows(tmp_path / "job" / "events.csv")
    events = [row["detail"] for row in rows if row["kind"] == "moved"]
    assert events == [f"the job is read at {flink.url} now, and was at {before.url}"]


def test_a_change_is_not_sent_again_to_the_new_port(deploy: Deploy, flink: FakeFlink) -> None:
    with a_flink(World()) as before, closing(TestbedRest(before.url, job="orders")) as client:
        before.fault = answers_500
        deploy("one", flink)
        with pytest.raises(NoAnswerError):
            client.ask_for("a" * 32, {})
    assert "PUT" not in [method for method, _ in flink.asked]
