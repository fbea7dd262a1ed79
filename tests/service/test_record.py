"""What is recorded of a job, and what of it survives."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from http.client import BadStatusLine
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from include.advise.edges import edges_of
from include.advise.operators import fit_operators
from include.files.appended import AppendedRows
from include.files.whole import csv_rows, read_json
from include.model.errors import SetupError, SpecError, StoreError
from include.service.clock import SteadyClock, turns
from include.service.reading import JobReading
from include.service.record import Polling, Recorder, alone_in, record
from include.testbeds.flink.rest import NoAnswerError
from include.workloads.recordings import read_recording
from include.workloads.recordings.operators import read_operators
from tests.command_line import refused, said
from tests.full_disk import no_file_above
from tests.service.fake_flink import Connect, FakeFlink, answers_500
from tests.service.flink_world import World


def events_of(folder: Path) -> list[str]:
    return [row["kind"] for row in csv_rows(folder / "events.csv")]


def a_recorder(folder: Path, world: World, every_s: float = 10.0) -> Recorder:
    recorder = Recorder(folder, world.name, "http://127.0.0.1:8081", every_s)
    recorder.begin(world.now_s)
    return recorder


def polling_of(flink: FakeFlink, stop: threading.Event, told: list[str]) -> Polling:
    url, job = flink.url, "orders"
    return Polling(url=url, job=job, every_s=0.5, lasts_s=60, stop=stop, told=told.append)


def recorded(folder: Path, world: World, polls: int, every_s: float = 15.0) -> None:
    recorder = a_recorder(folder, world, every_s)
    for _ in range(polls):
        recorder.keep(world.after(every_s))
    recorder.end(world.now_s, polls)


def test_slots_are_kept_when_task_managers_come_after_the_first_poll(
    tmp_path: Path, world: World
) -> None:
    recorder = a_recorder(tmp_path, world)
    recorder.keep(replace(world.after(10), task_managers=()))
    assert "slots_each" not in read_json(tmp_path / "recording.json")
    recorder.keep(world.after(10))
    recorder.end(world.now_s, 2)
    assert read_json(tmp_path / "recording.json")["slots_each"] == 2


def test_what_is_recorded_is_what_advise_and_operators_take(tmp_path: Path, world: World) -> None:
    world.load = lambda t: 150.0 + 100.0 * np.sin(t / 600)
    recorded(tmp_path / "job", world, 200)

    read = read_recording(str(tmp_path / "job"))
    assert read.name == "job"
    assert read.instances_per_host == 2
    assert read.is_busy_time
    assert read.began_at == 1_800_000_015.0
    each = {name: np.nanmax(values) for name, values in read.readings.items()}
    assert each["arrivals_per_s"] == pytest.approx(250, rel=0.05)
    assert each["instances"] == 2
    assert each["cpu_share"] == pytest.approx(250 * 0.005 / 2, rel=0.05)
    assert each["lag_items"] == 0
    assert each["latency_s"] == pytest.approx(0.006)

    operators = read_operators(str(tmp_path / "job"), {})
    graph = fit_operators(operators, edges_of(str(tmp_path / "job" / "edges.yaml")))
    fitted = {one.name: one.demand_ms.value for one in graph.operators}
    assert fitted == {"map": pytest.approx(5, rel=0.01), "sink": pytest.approx(1, rel=0.01)}
    assert "hardly busy" in graph.notes[0]


@pytest.mark.parametrize(
    ("before", "now", "share"),
    [(40, 39, "0.25"), (41, 41, "0.25"), (41, 40, ""), (40, 41, ""), (42, 41, "")],
)
def test_cpu_that_is_a_mean_of_other_task_managers_than_before_is_not_known(
    tmp_path: Path, world: World, before: int, now: int, share: str
) -> None:
    """Each has two cores and spends 5 s in 10 s."""
    recorder = a_recorder(tmp_path, world)
    for world.managers, cpu_s in ((before, 100.0), (now, 105.0)):
        read = world.after(10)
        managers = tuple(replace(one, cpu_s=cpu_s) for one in read.task_managers)
        recorder.keep(replace(read, task_managers=managers))
    assert csv_rows(tmp_path / "job.csv")[-1]["task_manager_cpu_share"] == share


def test_what_is_polled_after_the_last_rate_is_left_out(tmp_path: Path, world: World) -> None:
    """Or the last load would be replayed for as long as nobody ended the recorder."""
    world.load = lambda t: 150.0 + 100.0 * np.sin(t / 600)
    recorded(tmp_path / "job", world, 100)
    before = read_recording(str(tmp_path / "job"))
    again = a_recorder(tmp_path / "job", world, 15)
    for turn in range(1, 9):
        again.miss(world.now_s + 15 * turn, "no answer")
    again.end(world.now_s + 120, 8)

    read = read_recording(str(tmp_path / "job"))
    assert np.array_equal(read.times_s, before.times_s)
    assert read.readings.keys() == before.readings.keys()
    assert "no rate was read in the last 2 min, which are left out" in read.notes


def test_operators_of_a_folder_need_no_edges(tmp_path: Path, world: World) -> None:
    world.load = lambda t: 150.0 + 100.0 * np.sin(t / 600)
    recorded(tmp_path / "job", world, 100)
    asked = ["operators", str(tmp_path / "job"), "--out", str(tmp_path / "out")]
    assert "map>sink, out per record in  1 " in said(*asked)
    assert (tmp_path / "out" / "job_experiment.yaml").is_file()


def test_restarts_rescalings_and_redeployments_are_rows_of_what_they_are(
    tmp_path: Path, world: World
) -> None:
    recorder = a_recorder(tmp_path, world)

    def polled(times: int) -> None:
        for _ in range(times):
            recorder.keep(world.after(10))

    polled(3)
    world.restart(25)
    polled(6)
    world.most["map"] = 4
    world.restart(5, map=4)
    world.restarts -= 1
    polled(2)
    world.restarts += 1  # Flink counts late
    polled(1)
    world.job, world.restarts = "b" * 32, 0
    polled(2)
    world.managers = 1
    polled(1)
    recorder.miss(world.now_s + 10, "Flink does not answer GET x: timed out")
    recorder.miss(world.now_s + 20, "Flink does not answer GET x: timed out")
    recorder.keep(world.after(30))

    assert events_of(tmp_path) == [
        "begun", "state", "state", "restarted", "rescaled", "asked", "redeployed",
        "task_managers_gone", "no_answer", "answers",
    ]  # fmt: skip
    rows = csv_rows(tmp_path / "job.csv")
    assert [row["state"] for row in rows[3:6]] == ["RESTARTING", "RESTARTING", "RUNNING"]
    down = [float(row["latency_s"]) for row in rows[3:5]]
    assert down == [pytest.approx(10.006), pytest.approx(20.006)]
    assert rows[5]["rate_per_s"] == "", "no rate across a restart"
    assert [row["state"] for row in rows[-3:]] == ["no answer", "no answer", "RUNNING"]
    assert {row["task_manager_slots"] for row in rows[-3:-1]} == {""}


def test_what_a_poll_could_not_read_has_not_changed(tmp_path: Path) -> None:
    world = World(restarts=3)
    recorder = a_recorder(tmp_path, world)
    recorder.keep(world.after(10))
    now = world.after(10)
    bounds = (replace(one, asked_least=one.parallelism) for one in now.operators)
    recorder.keep(
        replace(
            now, restarts=None, elastic=False, operators=tuple(bounds), task_managers=(),
            missing=("restarts: no answer", "TaskManagers: no answer"),
        )
    )  # fmt: skip
    world.managers = 1
    recorder.keep(world.after(10))

    assert events_of(tmp_path) == ["begun", "task_managers_gone"]
    asked = [row["asked_least"] for row in csv_rows(tmp_path / "operators.csv")]
    assert asked == ["1"] * 3 + [""] * 3 + ["1"] * 3


def test_a_job_that_waits_for_slots_has_no_graph_and_is_not_rescaled(
    tmp_path: Path, world: World
) -> None:
    """Flink answers with the parallelism that it was submitted with, and without a plan."""
    recorder = a_recorder(tmp_path, world)
    recorder.keep(world.after(10))
    graph = (tmp_path / "edges.yaml").read_text()
    now = world.after(10)
    most = tuple(replace(one, parallelism=128) for one in now.operators)
    recorder.keep(replace(now, state="CREATED", started_s=0.0, operators=most, edges=()))
    assert (tmp_path / "edges.yaml").read_text() == graph
    world.restart(5, map=3)
    recorder.keep(world.after(10))

    events = {row["kind"]: row["detail"] for row in csv_rows(tmp_path / "events.csv")}
    assert events["rescaled"] == "map 2 -> 3"
    assert events_of(tmp_path) == ["begun", "state", "state", "rescaled"]


def test_a_folder_goes_on_where_it_was_left(tmp_path: Path, world: World) -> None:
    recorded(tmp_path, world, 3)
    with (tmp_path / "job.csv").open("a") as file:
        file.write("1800000060.0,aaaa,RUN")  # it was killed while it wrote
    world.advance(100)
    world.job = "c" * 32
    recorded(tmp_path, world, 3)

    assert events_of(tmp_path) == ["begun", "ended", "gap", "redeployed", "ended"]
    rows = csv_rows(tmp_path / "job.csv")
    assert len(rows) == 6
    assert rows[3]["rate_per_s"] == ""
    read = read_recording(str(tmp_path))
    assert read.times_s.tolist() == [0, 15, 30, 145, 160, 175]


@pytest.mark.parametrize("command", [("record", "--out"), ("shadow", "--state")])
@pytest.mark.parametrize("every", ["-5", "0.5", "301", "nan"])
def test_how_often_and_how_long_are_checked_together(
    tmp_path: Path, command: tuple[str, str], every: str
) -> None:
    name, folder = command
    given = ("http://127.0.0.1:1", "--job", "orders", folder, tmp_path / "out")
    told = refused(name, *given, "--every", every, "--for", "2parsecs")
    assert ": 2 problems\n" in told
    assert f"--every: write seconds from 1 to 300, got {every}" in told
    assert "--for: cannot read '2parsecs'" in told
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path, world: World) -> None:
    recorded(tmp_path / "job", world, 1)
    with pytest.raises(SpecError, match="has a recording of 'orders'"):
        Recorder(tmp_path / "job", "payments", "http://h:1", 5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(SpecError, match="something else in it"):
        Recorder(tmp_path / "mine", "orders", "http://h:1", 5)
    (tmp_path / "job" / "job.csv").write_text("time_s,other\n1,2\n")
    with pytest.raises(StoreError, match="other columns"):
        Recorder(tmp_path / "job", "orders", "http://h:1", 5)


def test_what_a_kill_leaves_of_the_first_file_is_nothing_else(tmp_path: Path, world: World) -> None:
    (tmp_path / ".recording.json.draft-0123abcd").write_text("{")
    recorded(tmp_path, world, 1)
    assert read_json(tmp_path / "recording.json")["job"] == "orders"


def test_half_a_header_stays_nowhere(tmp_path: Path) -> None:
    with no_file_above(3), pytest.raises(SetupError, match="cannot be written"):
        AppendedRows(tmp_path / "rows.csv", ("a", "b", "c"))
    assert (tmp_path / "rows.csv").read_bytes() == b""


def test_two_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with (
        alone_in(tmp_path, "records"),
        pytest.raises(SetupError, match="another process records"),
        alone_in(tmp_path, "records"),
    ):
        pass
    with alone_in(tmp_path, "records"):
        pass


def test_a_folder_that_takes_no_lock_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(SetupError, match="name one on a local disk"), alone_in(tmp_path, "records"):
        pass


@pytest.mark.parametrize("inside", ["", "job"])
def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(SetupError, match="file is a file; name a folder"),
        alone_in(tmp_path / "file" / inside, "records"),
    ):
        pass


@pytest.mark.parametrize("command", ["record", "shadow"])
def test_a_start_without_flink_says_what_to_check_and_leaves_no_folder(
    tmp_path: Path, command: str
) -> None:
    option = {"record": "--out", "shadow": "--state"}[command]
    given = ("http://127.0.0.1:1", "--job", "orders", option, tmp_path / "new")
    assert "refused; check the address and that it runs" in refused(command, *given)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_was_there_or_got_a_file_stays(tmp_path: Path) -> None:
    with alone_in(tmp_path, "records"):
        pass
    with alone_in(tmp_path / "new", "records"):
        (tmp_path / "new/job.csv").touch()
    assert tmp_path.exists()
    assert (tmp_path / "new/job.csv").exists()


def test_what_blocks_elsewhere_is_no_second_process(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), alone_in(tmp_path, "records"):
        raise BlockingIOError
    with alone_in(tmp_path, "records"):
        pass


def test_a_full_disk_leaves_whole_rows(tmp_path: Path) -> None:
    """The limit on the size of a file is real, and fails as a full disk does."""
    rows = AppendedRows(tmp_path / "rows.csv", ("a", "b"))
    rows.append([(1, "x")])
    before = (tmp_path / "rows.csv").read_bytes()
    with no_file_above(len(before) + 5):
        with pytest.raises(SetupError, match="cannot be written"):
            rows.append([(2, "y" * 20)])
        assert (tmp_path / "rows.csv").read_bytes() == before
    rows.append([(3, "z")])
    assert rows.last() == {"a": "3", "b": "z"}
    rows.close()


def test_a_row_that_could_not_be_cut_off_is_cut_off_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.write

    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with closing(AppendedRows(tmp_path / "rows.csv", ("a", "b"))) as rows:
        with monkeypatch.context() as full:
            full.setattr("os.write", lambda file, content: whole(file, content[:2]))
            full.setattr("os.ftruncate", refused)
            for _ in range(2):
                with pytest.raises(SetupError, match="cannot be written"):
                    rows.append([(1, 2)])
        rows.append([(3, 4)])
    assert (tmp_path / "rows.csv").read_text() == "a,b\n3,4\n"


def test_what_a_full_disk_kept_out_is_written_once_there_is_room(
    tmp_path: Path, world: World
) -> None:
    recorder = a_recorder(tmp_path, world)

    def lost() -> None:
        world.advance(10)
        with no_file_above(1), pytest.raises(SetupError, match="cannot be written"):
            recorder.keep(world.reading())

    lost()
    assert not (tmp_path / "edges.yaml").exists()
    recorder.keep(world.after(10))
    assert (tmp_path / "edges.yaml").is_file()
    for _ in range(2):
        rates = recorder.keep(world.after(10))
    lost()
    rates = recorder.keep(world.after(10))
    assert rates.since_s == pytest.approx(20), "with what the lost poll would have told"

    world.restart(5, map=3)
    lost()
    world.managers = 1
    lost()
    recorder.keep(world.after(10))
    assert events_of(tmp_path) == ["begun", "rescaled", "task_managers_gone"]


def test_a_lost_poll_is_a_turn(
    tmp_path: Path, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(recorder: Recorder, now: JobReading) -> None:
        raise SetupError("the disk is full")

    monkeypatch.setattr(Recorder, "keep", full)
    stop, told, turned = threading.Event(), [], []

    def turns_once() -> None:
        turned.append(1)
        stop.set()

    kept = record(polling_of(flink, stop, told), tmp_path / "job", turned=turns_once)
    assert (kept, turned) == (0, [1])
    assert told == ["this poll is lost: the disk is full"]


def test_nothing_is_written_into_a_folder_that_took_the_place_of_its_own(
    tmp_path: Path, flink: FakeFlink
) -> None:
    """Another process may record there."""
    stop, told, turned = threading.Event(), [], []

    def moves() -> None:
        turned.append(1)
        if len(turned) == 2:
            (tmp_path / "job").rename(tmp_path / "moved")
        if len(turned) == 4:
            stop.set()

    record(polling_of(flink, stop, told), tmp_path / "job", turned=moves)
    assert not (tmp_path / "job").exists()
    assert [row["kind"] for row in csv_rows(tmp_path / "moved" / "events.csv")] == [
        "begun",
        "ended",
    ]
    problem = f"{tmp_path / 'job'} was removed or replaced; end this process and start it again"
    assert told == [f"this poll is lost: {problem}"]


def test_a_clock_that_was_set_while_the_disk_was_full_is_told_once_there_is_room(
    tmp_path: Path, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    say, lost, stop = Recorder.say, [], threading.Event()

    def full(recorder: Recorder, at_s: float, *events: tuple[str, str]) -> None:
        if events and events[0][0] == "clock":
            if not lost:
                lost.append(events)
                raise SetupError("the disk is full")
            stop.set()
        say(recorder, at_s, *events)

    monkeypatch.setattr(Recorder, "say", full)
    clock = SteadyClock()
    monkeypatch.setattr(clock, "jumped_s", iter([60.0, *[0.0] * 100]).__next__)
    record(polling_of(flink, stop, []), tmp_path / "job", clock=clock)
    rows = csv_rows(tmp_path / "job" / "events.csv")
    clocks = [row["detail"] for row in rows if row["kind"] == "clock"]
    assert clocks == ["the clock of this machine was set by +60 s"]


def test_a_line_end_in_an_answer_is_none_in_a_row(tmp_path: Path, world: World) -> None:
    recorder = a_recorder(tmp_path, world)
    world.advance(10)
    missing = ("restarts: garbage\r\n", "checkpoints: \u2028")
    recorder.keep(replace(world.reading(), missing=missing))
    recorder.miss(world.now_s + 10, str(BadStatusLine("garbage\r\n")))
    recorder.end(world.now_s + 10, 1)
    world.advance(20)

    a_recorder(tmp_path, world).end(world.now_s, 0)
    told = [row["missing"] for row in csv_rows(tmp_path / "job.csv")]
    assert told == ["restarts: garbage ; checkpoints:", "garbage"]


def test_a_folder_with_a_line_end_in_a_row_goes_on(tmp_path: Path) -> None:
    """As versions before wrote it."""
    (tmp_path / "rows.csv").write_text('a,b,c\n1,2,3\n4,5,"garbage\r\n"\n')
    rows = AppendedRows(tmp_path / "rows.csv", ("a", "b", "c"))
    assert rows.last() == {"a": "4", "b": "5", "c": "garbage"}
    rows.append([(6, 7, None)])
    assert rows.last() == {"a": "6", "b": "7", "c": ""}
    rows.close()


def test_a_redeployment_while_nobody_answered_is_told_after_a_restart(
    tmp_path: Path, world: World
) -> None:
    recorder = a_recorder(tmp_path, world)
    recorder.keep(world.after(10))
    for service in (recorder, None):
        service = service or a_recorder(tmp_path, world)
        world.advance(10)
        service.miss(world.now_s, "timed out")
        service.end(world.now_s, 0)
    world.job = "b" * 32
    recorded(tmp_path, world, 1)

    assert events_of(tmp_path)[-2:] == ["redeployed", "ended"]


def test_faults_and_another_job_at_the_address_are_told_once_and_the_job_is_waited_for(
    tmp_path: Path, flink: FakeFlink
) -> None:
    """Its Flink is gone, another takes the port, and then it is back."""
    told: list[str] = []
    stop, polled = threading.Event(), count(1)

    def fault(handler: BaseHTTPRequestHandler) -> bool:
        if handler.path != "/jobs/overview":
            return False
        poll = next(polled)
        flink.world.advance(10)
        flink.world.name = "clicks" if poll in (4, 5) else "orders"
        if poll == 6:
            stop.set()
        return poll == 3 and answers_500(handler)

    flink.fault = fault
    assert record(polling_of(flink, stop, told), tmp_path / "job") == 2
    assert len(told) == 2
    assert "it is broken" in told[0]
    assert told[1].startswith(f"{flink.url} has no job 'orders'; it has: clicks; if ")
    assert events_of(tmp_path / "job") == ["begun", "no_answer", "no_job", "answers", "ended"]
    rows = csv_rows(tmp_path / "job" / "job.csv")
    assert [row["job"] for row in rows] == ["a" * 32] * 5
    assert {method for method, _ in flink.asked} == {"GET"}


def test_a_job_that_is_not_there_is_told_at_once(tmp_path: Path, flink: FakeFlink) -> None:
    with pytest.raises(NoAnswerError, match="has no job 'payments'; it has: orders"):
        record(
            Polling(url=flink.url, job="payments", every_s=1, lasts_s=1, told=print),
            tmp_path / "job",
        )
    assert not (tmp_path / "job" / "job.csv").exists()


def test_a_killed_recorder_loses_one_poll_at_most(tmp_path: Path, flink: FakeFlink) -> None:
    command = [
        sys.executable, "-m", "include.cli", "record", flink.url, "--job", "orders",
        "--out", str(tmp_path / "job"), "--every", "1",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    kept = 0
    for _ in range(2):
        before = len(flink.asked)
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
        give_up_s = time.monotonic() + 120
        while len(flink.asked) < before + 60 and time.monotonic() < give_up_s:
            flink.world.advance(1)
            time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        asked = [path for _, path in flink.asked[before:]]
        assert len(asked) >= 60, "it was too slow"
        polls = asked.count("/jobs/overview") - 1  # the first asks whether there is the job
        rows = csv_rows(tmp_path / "job" / "job.csv")
        assert len(rows) - kept >= polls - 1 > 0
        kept = len(rows)

    assert events_of(tmp_path / "job").count("gap") == 1
    times = [float(row["time_s"]) for row in rows]
    assert times == sorted(set(times))
    assert read_recording(str(tmp_path / "job")).times_s.size == len(rows)


def test_a_clock_that_is_set_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    clock = SteadyClock()
    began_s = clock.now_s()
    monkeypatch.setattr(time, "time", lambda: real() - 3600)

    assert 0 <= clock.now_s() - began_s < 60
    assert clock.jumped_s() == pytest.approx(-3600, abs=60)
    assert clock.jumped_s() == 0.0
    clock.not_before(began_s + 1000)
    assert clock.now_s() >= began_s + 1000
    assert clock.jumped_s() == 0.0


def test_a_clock_goes_on_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SteadyClock()
    began_s, wall, up = clock.now_s(), time.time, time.clock_gettime
    monkeypatch.setattr(time, "time", lambda: wall() + 3600)
    monkeypatch.setattr(time, "clock_gettime", lambda which: up(which) + 3600)

    assert clock.now_s() - began_s == pytest.approx(3600, abs=60)
    assert clock.jumped_s() == 0.0


def test_turns_keep_their_beat_and_leave_out_what_was_missed() -> None:
    clock, stop = SteadyClock(), threading.Event()
    times = []
    for at_s in turns(clock, 0.2, 1.5, stop):
        times.append(at_s)
        if len(times) == 2:
            time.sleep(0.5)

    beats = np.array(times) / 0.2
    assert np.allclose(beats, np.round(beats), atol=1e-3)
    assert max(np.diff(np.round(beats))) >= 2


def test_a_poll_takes_little_of_a_core(flink: FakeFlink, connect: Connect) -> None:
    """At most 1 % of a core at a poll every five seconds."""
    client = connect()
    client.reading("orders")
    began_s = time.thread_time()
    for _ in range(10):
        flink.world.advance(5)
        client.reading("orders")
    assert (time.thread_time() - began_s) / 10 < 0.05
