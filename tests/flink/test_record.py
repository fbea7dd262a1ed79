"""A real Flink, recorded and shadowed from its REST interface alone."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from include.advise.edges import edges_of
from include.files.whole import csv_rows
from include.model.decision import StartInstance
from include.service.record import Polling, record
from include.service.rest import FlinkRest
from include.service.shadow import asked_controllers
from include.service.shadow_loop import run_shadow
from include.service.testbed import job_of_testbed
from tests.flink.flink_run import FlinkRun, configured, flink_run

pytestmark = pytest.mark.flink

TWO_HOSTS = (("front", "back", "end"), ("back", "front"))


@pytest.fixture(scope="module")
def run() -> Iterator[FlinkRun]:
    with flink_run(configured(emits_s=400, duration_s=500), TWO_HOSTS) as run:
        yield run


def kinds_of(folder: Path) -> list[str]:
    return [row["kind"] for row in csv_rows(folder / "events.csv")]


def test_a_reading_is_what_the_testbed_knows(run: FlinkRun) -> None:
    run.testbed.advance_to(max(run.testbed.now_s, run.state.now_s()) + 15)
    url, job = job_of_testbed(run.config.run, threading.Event())
    with closing(FlinkRest(url)) as flink:
        reading = flink.reading(job)

    assert reading.running
    assert reading.elastic
    assert reading.instances == {"source_s": 1, "front": 2, "back": 2, "end": 1}
    assert reading.scaled == ("front", "back", "end")
    edges = {("source_s", "front"), ("front", "back"), ("front", "end"), ("back", "end")}
    assert set(reading.edges) == edges
    assert reading.slots == 6
    assert reading.last_checkpoint_s is not None
    assert reading.started_s < reading.up_s < reading.at_s
    assert {one.id for one in reading.task_managers} == {"provider", "host-1", "host-2"}
    by_name = {one.operator: one for one in reading.operators}
    assert by_name["source_s"].records_out > 100
    assert by_name["source_s"].pending_records is not None
    taken = by_name["back"].records_in / by_name["front"].records_in
    assert taken == pytest.approx(2 / 3, abs=0.05)
    assert not reading.missing


def test_recording_follows_a_rescale_and_a_killed_host(run: FlinkRun, tmp_path: Path) -> None:
    url, job = job_of_testbed(run.config.run, threading.Event())
    stop, folder = threading.Event(), tmp_path / "job"
    told: list[str] = []
    polling = Polling(url=url, job=job, every_s=2, lasts_s=300, stop=stop, told=told.append)
    recorder = threading.Thread(target=record, args=(polling, folder))
    recorder.start()
    try:
        run.testbed.advance_to(max(run.testbed.now_s, run.state.now_s()) + 20)
        run.apply(StartInstance("front", "host-2"))
        run.settle()
        run.testbed.advance_to(max(run.testbed.now_s, run.state.now_s()) + 10)
        run.state.fleet.hosts[2].process.end(first=signal.SIGKILL)
        run.testbed.advance_to(max(run.testbed.now_s, run.state.now_s()) + 20)
    finally:
        stop.set()
        recorder.join(timeout=60)

    kinds = kinds_of(folder)
    assert {"begun", "rescaled", "task_managers_gone", "ended"} <= set(kinds), kinds
    rates = [float(row["rate_per_s"]) for row in csv_rows(folder / "job.csv") if row["rate_per_s"]]
    assert rates
    assert sorted(rates)[len(rates) // 2] == pytest.approx(20, rel=0.3)
    assert len(edges_of(str(folder / "edges.yaml"))) == 4
    assert told == []


def test_controllers_decide_beside_it(run: FlinkRun, tmp_path: Path) -> None:
    url, job = job_of_testbed(run.config.run, threading.Event())
    lines: list[str] = []
    run_shadow(
        Polling(url=url, job=job, every_s=5, lasts_s=60, told=lines.append), tmp_path,
        controllers=asked_controllers(["tide", "ds2", "hpa"], {}), prices="btu60",
        objective="latency p95 < 2 s", most_slots=0, page="0", advised=lines.append,
    )  # fmt: skip
    rows = csv_rows(tmp_path / "decisions.csv")
    assert {row["controller"] for row in rows} == {"tide", "ds2", "hpa"}, lines
    assert {row["operator"] for row in rows} == {"front", "back", "end"}
    assert not [row for row in rows if row["failed"] == "True"]
