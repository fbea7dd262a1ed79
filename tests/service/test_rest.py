"""What the client reads of a job, asks of it, and how it is told where Flink is."""

from __future__ import annotations

import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from include.model.errors import SpecError
from include.service.rest import (
    CA,
    TOKEN,
    TOKEN_FILE,
    FlinkRest,
    NoSuchJobError,
    operator_names,
)
from include.testbeds.flink.rest import NoAnswerError
from tests.http_server import sends
from tests.service.fake_flink import Connect, FakeFlink, answers_500
from tests.service.flink_world import NAMES, World, vertex


def test_a_reading_has_what_the_job_does(connect: Connect, flink: FakeFlink, world: World) -> None:
    world.advance(60)
    reading = connect().reading("orders")

    expected = world.reading()
    for name in ("at_s", "job", "state", "started_s", "edges", "restarts", "elastic"):
        assert getattr(reading, name) == getattr(expected, name)
    kept = "operator vertex parallelism asked_most records_in records_out busy_s"
    for read, real in zip(reading.operators, expected.operators, strict=True):
        for name in kept.split():
            assert getattr(read, name) == pytest.approx(getattr(real, name)), name
    source = reading.operators[0]
    assert source.pending_records == world.pending
    assert source.busy_share == source.busiest_share == 0.5
    assert source.back_pressured_share is None
    assert source.watermark_ms is None
    assert reading.task_managers[0].memory_bytes == 5e8
    assert reading.missing == ()
    assert reading.slots == 2


def test_metrics_are_asked_for_before_they_are_read(connect: Connect, flink: FakeFlink) -> None:
    """Flink fetches when somebody asks, and answers before it has fetched."""
    connect().reading("orders")

    paths = [path for _, path in flink.asked]
    first = next(i for i, path in enumerate(paths) if path.endswith("/subtasks/metrics"))
    details = [i for i, path in enumerate(paths) if path == f"/jobs/{flink.world.job}"]
    assert details[0] < first < details[-1]


def test_of_a_job_before_nothing_is_kept(connect: Connect, flink: FakeFlink, world: World) -> None:
    client = connect()
    client.reading("orders")
    world.job = "b" * 32
    client.reading("orders")
    assert {job for job, _ in client._names} == {world.job}


def test_a_poll_of_200_task_managers_takes_as_many_requests_as_of_41(
    connect: Connect, flink: FakeFlink, world: World
) -> None:
    requests = []
    client = connect()
    for world.managers in (41, 200):
        flink.asked.clear()
        reading = client.reading("orders")
        requests.append(len(flink.asked))
        assert reading.missing == ()
        assert len(reading.task_managers) == world.managers
        assert {one.memory_bytes for one in reading.task_managers} == {5e8}
        assert {one.cpu_load for one in reading.task_managers} == {0.25}

    assert requests[1] <= requests[0] < 41


def test_a_job_without_an_adaptive_scheduler_is_not_elastic(
    connect: Connect, flink: FakeFlink
) -> None:
    flink.no_requirements = True
    reading = connect().reading("orders")

    assert not reading.elastic
    assert {(one.asked_least, one.asked_most) for one in reading.operators} == {(1, 1), (2, 2)}


def test_a_backlog_that_is_registered_late_is_read_at_once(
    connect: Connect, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect()
    monkeypatch.setattr(flink, "late_backlog", True)
    source = client.reading("orders").operators[0]
    assert source.pending_records is None
    monkeypatch.setattr(flink, "late_backlog", False)
    assert client.reading("orders").operators[0].pending_records == flink.world.pending


@pytest.mark.parametrize("pending", [float("nan"), float("inf")])
def test_a_backlog_that_is_no_number_is_not_known(
    connect: Connect, world: World, pending: float
) -> None:
    world.pending = pending
    reading = connect().reading("orders")
    assert reading.operators[0].pending_records is None
    assert reading.missing == ()


@pytest.mark.parametrize("plan", [{"jid": "", "nodes": []}, {}], ids=["2.2", "before"])
def test_a_job_that_waits_for_slots_is_read_although_it_has_no_plan(
    connect: Connect, flink: FakeFlink, plan: dict[str, Any]
) -> None:
    flink.changed = {"state": "CREATED", "plan": plan}
    reading = connect().reading("orders")
    assert (reading.state, reading.edges) == ("CREATED", ())


def test_an_answer_without_metrics_is_a_gap(connect: Connect, flink: FakeFlink) -> None:
    client = connect()
    assert client.reading("orders").missing == ()
    flink.late_backlog = True  # the name is known and no longer there
    assert client.reading("orders").missing == (
        "metrics of source_events: Flink's answer is empty",
    )


@pytest.mark.parametrize(
    ("counter", "state", "lacking"),
    [
        ("read-records", "RUNNING", ["map", "sink"]),
        ("write-records", "RUNNING", ["source_events", "map", "sink"]),
        ("write-records", "RESTARTING", []),
    ],
)
def test_counters_that_are_not_complete_are_gaps_of_a_job_that_runs(
    connect: Connect, flink: FakeFlink, counter: str, state: str, lacking: list[str]
) -> None:
    """A source is told by its reader; while a job is down nothing is complete."""
    details = flink._details()
    for each in details["vertices"]:
        each["metrics"][f"{counter}-complete"] = False
    flink.changed = {"vertices": details["vertices"], "state": state}
    told = [f"metrics of {name}: Flink has not those of all subtasks" for name in lacking]
    assert list(connect().reading("orders").missing) == told


def test_a_job_in_reactive_mode_is_not_elastic(connect: Connect, flink: FakeFlink) -> None:
    assert connect().reading("orders").elastic
    flink.options["scheduler-mode"] = "REACTIVE"
    assert not connect().reading("orders").elastic


def test_an_unknown_job_is_told_with_those_there_are(connect: Connect, flink: FakeFlink) -> None:
    with pytest.raises(NoSuchJobError) as caught:
        connect().reading("payments")
    assert str(caught.value) == (
        f"{flink.url} has no job 'payments'; it has: orders; "
        "if 'payments' has moved or was renamed, start again with its address or --job"
    )


def test_of_several_jobs_of_one_name_the_newest_is_read_and_the_others_are_told(
    connect: Connect, flink: FakeFlink
) -> None:
    """`act` changes nothing then: it may be the job of a colleague."""

    def overview(handler: BaseHTTPRequestHandler) -> bool:
        ours = flink._overview()
        ended = {**ours, "jid": "d" * 32, "state": "CANCELED"}
        jobs = [{**ours, "jid": "c" * 32, "start-time": 0}, ours, ended]
        return handler.path == "/jobs/overview" and sends(
            handler, 200, json.dumps({"jobs": jobs}).encode()
        )

    client = connect()
    flink.fault = overview
    reading = client.reading("orders")
    assert reading.job == flink.world.job
    [missing] = reading.missing
    assert missing.startswith(f"which job is meant: 'orders' is {'c' * 32}, too; end it, or")
    flink.fault = lambda handler: False
    assert client.reading("orders").missing == ()


@pytest.mark.parametrize(
    ("told", "known"),
    [
        (None, None),
        ("NaN", None),
        (float(-(2**63)), None),
        (-5.0, -5.0),
        (0.0, 0.0),
        (float("inf"), None),
    ],
)
def test_a_watermark_is_a_time_or_unknown(
    connect: Connect,
    flink: FakeFlink,
    monkeypatch: pytest.MonkeyPatch,
    told: object,
    known: float | None,
) -> None:
    asked = flink._metrics

    def answers(of: str, get: str | None) -> tuple[int, list[dict[str, Any]]]:
        status, metrics = asked(of, get)
        changes = {"min": told} if get else {}
        return status, [
            one | changes if one["id"] == "currentInputWatermark" else one for one in metrics
        ]

    monkeypatch.setattr(flink, "_metrics", answers)
    assert connect().reading("orders").operators[1].watermark_ms == known


def test_what_is_no_number_is_unknown_and_does_not_end_the_service(
    connect: Connect, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = {"hardware": {"cpuCores": "NaN"}, "totalResource": {}, "memoryConfiguration": {}}
    manager, endless = flink._manager(0), {"lowerBound": 1, "upperBound": float("inf")}
    monkeypatch.setattr(flink, "_manager", lambda number: {**manager, **odd})
    monkeypatch.setattr(
        flink, "_requirements", lambda: {vertex(name): {"parallelism": endless} for name in NAMES}
    )
    reading = connect().reading("orders")
    [first, _] = reading.task_managers
    assert (first.cores, first.reserved_cores, first.memory_limit_bytes) == (None, None, None)
    [missing] = reading.missing
    assert missing.startswith("resource requirements: ")
    assert "OverflowError" in missing
    assert not reading.elastic


def test_asking_replaces_the_bounds_of_every_vertex(
    connect: Connect, flink: FakeFlink, world: World
) -> None:
    client = connect()
    there = client.requirements(world.job)
    client.ask_for(world.job, {**there, vertex("map"): (1, 5)})

    assert flink.sent[0][vertex("map")] == {"parallelism": {"lowerBound": 1, "upperBound": 5}}
    assert flink.sent[0][vertex("sink")] == {"parallelism": {"lowerBound": 1, "upperBound": 1}}
    assert client.requirements(world.job)[vertex("map")] == (1, 5)
    assert client.look(world.job).bounds == client.requirements(world.job)


def test_a_token_is_sent_and_never_told(
    connect: Connect, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "secret-of-flink")
    client = connect()
    client.jobs()
    assert flink.headers["Authorization"] == "Bearer secret-of-flink"

    flink.fault = answers_500
    with pytest.raises(NoAnswerError) as caught:
        client.jobs()
    assert "secret" not in str(caught.value)


def test_a_token_may_be_in_a_file_and_is_read_again_when_it_is_renewed(
    connect: Connect, flink: FakeFlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").touch()
    monkeypatch.setenv(TOKEN_FILE, str(tmp_path / "token"))
    client = connect()
    for token in ("", "of-a-file", "the-next"):
        (tmp_path / "token").write_text(f"{token}\n")
        client.jobs()
        assert flink.headers.get("Authorization", "Bearer ") == f"Bearer {token}"
    (tmp_path / "token").unlink()
    with pytest.raises(NoAnswerError, match="cannot be read"):
        client.jobs()
    with pytest.raises(SpecError, match="cannot be read"):
        connect()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("jobmanager:8081", "write http://HOST:8081"),
        ("http://me:secret@host:8081", f"set {TOKEN}"),
        ("http://host:8081/?token=secret", "without"),
        ("ftp://host", "write http://HOST:8081"),
        ("http://host:port", "write http://HOST:8081"),
    ],
)
def test_what_is_no_address_is_refused(url: str, told: str) -> None:
    with pytest.raises(SpecError, match=told) as caught:
        FlinkRest(url)
    assert "secret" not in str(caught.value)


def test_a_wrong_file_of_certificates_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CA, "/nowhere/ca.pem")
    with pytest.raises(SpecError, match=CA):
        FlinkRest("https://host:8081")


def test_a_task_that_does_not_run_yet_is_the_state(
    connect: Connect, flink: FakeFlink, world: World
) -> None:
    vertices = flink._details()["vertices"]
    flink.changed = {"vertices": [{**one, "status": "INITIALIZING"} for one in vertices]}
    reading = connect().reading("orders")
    assert (reading.state, reading.started_s) == ("INITIALIZING", 0.0)
    assert replace(reading, state="RUNNING").running


def test_names_are_plain_unique_and_stable() -> None:
    chain = "Source: Kafka -> " + "Filter -> " * 20
    names = operator_names({"b": "Map", "a": "map", "c": chain, "d": "!!"})

    assert (names["a"], names["b"], names["d"]) == ("map_1", "map_2", "operator")
    assert names["c"].startswith("source_kafka_filter")
    assert len(names["c"]) <= 60
    given_already = operator_names({"a": "Map", "b": "Map", "c": "map 1", "d": "Map 3"})
    assert given_already == {"a": "map_2", "b": "map_4", "c": "map_1", "d": "map_3"}


def test_how_long_the_job_was_down_is_by_flinks_clock(
    flink: FakeFlink, connect: Connect, world: World
) -> None:
    world.restart(5.0)
    world.advance(20)
    flink.restores_s = 2.0
    client = connect()
    reading = client.reading("orders")
    assert (reading.started_s - reading.down_s, reading.up_s - reading.down_s) == (5.0, 7.0)
    client.reading("orders")
    times = [path for _, path in flink.asked if path.endswith("/subtasktimes")]
    assert len(times) == 3, "once for each start of the job"
    flink.changed = {"timestamps": {"RUNNING": 9000, "RESTARTING": 0, "CREATED": 6000}}
    assert connect().reading("orders").down_s == 6.0
