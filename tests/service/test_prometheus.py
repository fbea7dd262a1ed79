"""A job by what its reporter exports, read from a real Prometheus that scrapes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from include.service.prometheus import FlinkPrometheus
from include.service.rates import comparable
from include.testbeds.flink.rest import NoAnswerError
from tests.command_line import refused
from tests.http_server import sends, serving
from tests.live.world import wait_until
from tests.prometheus_server import prometheus
from tests.service.flink_world import NAMES, World, vertex

EDGES = (("source_events", "map"), ("map", "sink"))


def exported(world: World) -> str:
    """As Flink's reporter writes it: every character of a label that is not of a name is _."""
    of_job = f'job_id="{world.job}",job_name="orders_eu"'
    lines = [f"flink_jobmanager_job_numRestarts{{{of_job}}} {world.restarts}"]
    ran_ms = 1000 * (world.now_s - world.started_s) if world.running else 0
    lines.append(f"flink_jobmanager_job_runningTime{{{of_job}}} {ran_ms}")
    for manager in ("tm-0", "tm-1"):
        labels = f'{{tm_id="{manager}"}}'
        lines.append(f"flink_taskmanager_Status_JVM_CPU_Load{labels} 0.25")
        lines.append(f"flink_taskmanager_Status_JVM_Memory_Heap_Used{labels} 5e8")
    reading = world.reading()
    for one, name in zip(reading.operators, NAMES.values(), strict=True):
        for subtask in range(one.parallelism if world.running else 0):
            label = name.replace(" ", "_")
            labels = (
                f'{{{of_job},tm_id="tm-{subtask % 2}",task_id="{one.vertex}",task_name="{label}",'
                f'subtask_index="{subtask}",task_attempt_id="{world.restarts}-{label}-{subtask}"'
            )
            values = {
                "numRecordsIn": one.records_in or 0.0,
                "numRecordsOut": one.records_out or 0.0,
                "accumulateBusyTimeMs": 1000 * (one.busy_s or 0.0),
                "accumulateIdleTimeMs": 1000 * (one.idle_s or 0.0),
                "accumulateBackPressuredTimeMs": 0.0,
            }
            lines += [
                f"flink_taskmanager_job_task_{metric}{labels}}} {value / one.parallelism!r}"
                for metric, value in values.items()
            ]
            lines.append(f"flink_taskmanager_job_task_busyTimeMsPerSecond{labels}}} 500")
            lines.append(f"flink_taskmanager_job_task_backPressuredTimeMsPerSecond{labels}}} NaN")
            if one.vertex == vertex("source"):
                of_source = f'{labels},operator_name="Source:_events"}}'
                pending = "flink_taskmanager_job_task_operator_pendingRecords"
                lines.append(f"{pending}{of_source} {world.pending!r}")
    return "\n".join(lines) + "\n"


@contextmanager
def a_reporter(world: World) -> Iterator[str]:
    """Where it is scraped."""
    text = {"Content-Type": "text/plain; version=0.0.4"}
    with serving(lambda handler, _: sends(handler, 200, exported(world).encode(), text)) as port:
        yield f"127.0.0.1:{port}"


@pytest.mark.live
def test_a_job_is_read_from_its_reporter_as_from_flink_itself(tmp_path: Path, world: World) -> None:
    world.advance(60)
    with (
        a_reporter(world) as target,
        prometheus(tmp_path, target) as address,
        closing(FlinkPrometheus(f"http://{address}", EDGES)) as flink,
    ):
        wait_until(lambda: _restarts(flink) == 0, "the job is read")
        reading = flink.reading("orders eu")
        expected = world.reading()
        assert reading.state == "RUNNING"
        assert (reading.job, reading.edges, reading.restarts) == (world.job, EDGES, 0)
        assert reading.instances == expected.instances
        for ours, theirs in zip(reading.operators, expected.operators, strict=False):
            for kind in ("records_in", "records_out", "busy_s", "idle_s", "pending_records"):
                assert getattr(ours, kind) == pytest.approx(getattr(theirs, kind)), kind
            assert (ours.busiest_share, ours.back_pressured_share) == (0.5, None)
            assert ours.max_parallelism == 0
        assert [(one.id, one.slots) for one in reading.task_managers] == [("tm-0", 1), ("tm-1", 1)]
        assert {one.memory_bytes for one in reading.task_managers} == {5e8}

        began_s = reading.started_s
        assert flink.reading("orders eu").started_s == began_s
        world.restart(1.0)
        world.advance(3)
        wait_until(lambda: _restarts(flink) == 1, "the restart is read")
        again = flink.reading("orders eu")
        assert again.started_s != began_s  # so that no counter is taken to go on

        wrong = FlinkPrometheus(f"http://{address}", (("source_events", "mop"),))
        with pytest.raises(NoAnswerError, match="--edges has mop"):
            wrong.job_named("orders eu")


@contextmanager
def a_prometheus(world: World, missed: set[str]) -> Iterator[str]:
    """One that has what its last scrape of each of them gave, but of those that it missed."""

    def series(of_job: bool) -> Iterator[dict[str, Any]]:
        for line in exported(world).splitlines():
            name, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (.*)", line).groups()
            metric = {"__name__": name, **dict(re.findall(r'(\w+)="([^"]*)"', labels))}
            if ("job_id" in metric) == of_job and metric.get("tm_id", "jobmanager") not in missed:
                yield {"metric": metric, "value": [world.now_s, value]}

    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        result = list(series("job_name" in handler.path))
        content = {"status": "success", "data": {"result": result}}
        sends(handler, 200, json.dumps(content).encode())

    with serving(answer) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("who", "lacking"),
    [
        ("tm-1", ["map: 1 of 2"]),
        ("tm-0", ["map: 1 of 2", "sink: 1 of 1", "source_events: 1 of 1"]),
        ("jobmanager", []),
    ],
)
def test_a_scrape_that_was_missed_is_a_gap_and_no_restart(
    world: World, who: str, lacking: list[str]
) -> None:
    missed: set[str] = set()
    world.advance(60)
    with a_prometheus(world, missed) as url:
        flink = FlinkPrometheus(url, EDGES, now_s=lambda: world.now_s)
        before = flink.reading("orders eu")
        missed.add(who)
        world.advance(15)
        gap = flink.reading("orders eu")
        missed.clear()
        world.advance(15)
        after = flink.reading("orders eu")
        missed.add(who)
        world.restart(1.0, map=1)
        world.advance(3)
        restarted = flink.reading("orders eu")

    said = [f"metrics of {each} subtasks are not exported now" for each in lacking]
    assert sorted(gap.missing) == said
    for now in (gap, after):
        assert comparable(before, now)
        assert [one.id for one in now.task_managers] == ["tm-0", "tm-1"]
    counted = {one.operator for one in gap.operators if one.records_out is not None}
    assert counted == before.instances.keys() - {each.partition(":")[0] for each in lacking}
    assert (after.missing, restarted.missing) == ((), ())
    assert not comparable(after, restarted)


def test_what_is_not_exported_for_minutes_has_finished(world: World) -> None:
    """As a subtask of a bounded source, which leaves the export for good."""
    missed: set[str] = set()
    world.advance(60)
    with a_prometheus(world, missed) as url:
        flink = FlinkPrometheus(url, EDGES, now_s=lambda: world.now_s)
        flink.reading("orders eu")
        missed.add("tm-1")
        world.advance(295)
        gap = flink.reading("orders eu")
        world.advance(10)
        finished = flink.reading("orders eu")
    assert gap.missing
    assert (finished.missing, finished.instances["map"]) == ((), 1)


def _restarts(flink: FlinkPrometheus) -> int | None:
    """Of the job while it runs."""
    with suppress(NoAnswerError):
        flink.job_named("orders eu")
        reading = flink.reading("orders eu")
        return reading.restarts if reading.running else None
    return None


NO_LABELS = {"metric": {"__name__": "flink_taskmanager_job_task_numRecordsIn"}, "value": [0, "1"]}
RELABELLED = json.dumps({"status": "success", "data": {"result": [NO_LABELS]}}).encode()


@pytest.mark.parametrize("content", [b"[" * 200_000, RELABELLED], ids=["nested", "no labels"])
def test_an_answer_that_is_not_of_the_reporter_is_none(content: bytes) -> None:
    with serving(lambda handler, _: sends(handler, 200, content)) as port:
        flink = FlinkPrometheus(f"http://127.0.0.1:{port}", EDGES)
        for ask in (flink.job_named, flink.reading):
            with pytest.raises(NoAnswerError, match="otherwise than Prometheus"):
                ask("orders")


def test_options_that_do_not_go_together_are_told_at_once(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "job")
    alone = refused("record", "--prometheus", "http://h:9090", *out)
    assert "--job" in alone
    assert "--edges" in alone
    assert "either Flink's REST interface" in refused("record", "--job", "orders", *out)
