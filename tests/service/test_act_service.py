"""An acting service over HTTP: its journal, its switch, and what comes of failures on the way."""

from __future__ import annotations

import resource
import subprocess
import sys
from contextlib import ExitStack

import pytest

from include.model.errors import SetupError, StoreError
from include.service.act import Acting, Service, Wish, serve
from include.service.history import Entry
from include.service.journal import FILE, Journal, sentence
from include.service.moment import moment
from include.service.pause import pause, resume
from include.service.rest import FlinkRest
from tests.service.acting_world import limits_of
from tests.service.flink_server import flink_server


@pytest.fixture
def flink():
    with flink_server() as server, ExitStack() as opened:
        server.opened = opened
        yield server


def service_of(flink, state, *, really=True, timeout_s=2.0, **limits):
    """A service that does not wait between changes, and what it wants, which tests set."""
    wish = {"parse": 3}
    given = {"between_changes_s": 0, "respect_others_s": 3600, "wait_after_failure_s": 3600}
    acting = Acting(
        job_name="shop", controller="c", really=really, state=state,
        limits=limits_of(**{**given, **limits}),
    )  # fmt: skip
    rest = FlinkRest(flink.url, timeout_s=timeout_s, settles_s=0.0)
    flink.opened.callback(rest.close)
    why = {"parse": "queue grows"}
    return Service(acting, rest, lambda _: Wish(wish, why)), acting, wish


def kinds(state):
    return [entry.kind for entry in Journal(state).read()]


def told(state):
    return [sentence(entry) for entry in Journal(state).read()]


def test_a_change_is_asked_for_taken_and_up_and_a_colleague_can_read_why(flink, tmp_path):
    service, _, wish = service_of(flink, tmp_path)
    assert service.step().asks == {"parse": 3}
    assert flink.puts == [{"parse": 3, "store": 2}]  # lower bounds and others are kept
    wish["parse"] = 20
    service.step()
    assert flink.bounds["a" * 32] == [1, 7]
    assert "\n".join(told(tmp_path)).splitlines() == [
        f"the job is {flink.job} and asks for at most parse 2, store 2",
        "asks for parse 2 -> 3 (queue grows)",
        "Flink takes parse 3",
        "parse 3 run",
        "asks for parse 3 -> 7 (queue grows)",
        "    parse does not get the 20 that are wanted: at most 4 at once",
        "Flink takes parse 7",
    ]


def test_a_dry_run_says_once_what_it_would_do_and_asks_for_nothing(flink, tmp_path):
    service, _, _ = service_of(flink, tmp_path, really=False)
    service.step()
    service.step()
    assert flink.puts == []
    assert kinds(tmp_path) == ["job", "would"]
    assert told(tmp_path)[1] == "would ask for parse 2 -> 3 (queue grows)"


def test_paused_nothing_changes_and_it_goes_on_when_resumed(flink, tmp_path):
    service, _, _ = service_of(flink, tmp_path)
    pause(tmp_path, "release day")
    assert "release day" in service.step().held[0]
    assert flink.puts == []
    assert resume(tmp_path)
    assert service.step().asks == {"parse": 3}
    assert kinds(tmp_path)[:4] == ["paused", "job", "held", "resumed"]
    assert "nothing changes, parse 3 wanted:\n    paused since" in told(tmp_path)[2]


def test_a_switch_that_cannot_be_read_stops_all_changes(flink, tmp_path):
    service, _, _ = service_of(flink, tmp_path)
    (tmp_path / "paused.json").write_text("{")
    assert "cannot be read" in service.step().held[0]
    assert flink.puts == []


def test_a_change_of_somebody_else_is_noticed_said_and_respected(flink, tmp_path):
    service, _, wish = service_of(flink, tmp_path)
    service.step()
    flink.bounds["b" * 32] = [1, 5]
    wish["parse"] = 4
    held = service.step().held
    assert "somebody else changed" in held[0]
    assert len(flink.puts) == 1
    assert any(
        "somebody else changed" in line and "store 2 -> 5" in line for line in told(tmp_path)
    )


def test_a_job_that_is_deployed_again_is_known_as_such(flink, tmp_path):
    service, _, _ = service_of(flink, tmp_path, between_changes_s=60)
    service.step()
    flink.job = "2" * 32
    assert "new to this service" in service.step().held[0]
    assert f"the job was deployed again as {'2' * 32}" in "".join(told(tmp_path))


def test_a_request_that_flink_refuses_is_not_repeated(flink, tmp_path):
    service, _, _ = service_of(flink, tmp_path)
    flink.fails = ("PUT",)
    service.step()
    flink.fails = ()
    assert "not up yet" in service.step().held[0]  # it may have been carried out: two minutes
    assert kinds(tmp_path) == ["job", "asks", "no answer", "held"]
    assert flink.puts == []


def test_a_request_that_hangs_and_is_carried_out_is_found_out(flink, tmp_path):
    service, _, wish = service_of(flink, tmp_path)
    service.step()
    wish["parse"] = 4
    flink.hangs_after_put_s = 3.0
    service.step()
    assert kinds(tmp_path)[-1] == "no answer"
    service.step()
    assert kinds(tmp_path)[-2:] == ["taken", "up"]
    assert [put["parse"] for put in flink.puts] == [3, 4]


@pytest.mark.parametrize("taken", [True, False])
def test_a_service_killed_at_its_request_finds_out_what_came_of_it(flink, tmp_path, taken):
    service, _, _ = service_of(flink, tmp_path)
    service.step()
    before = {"parse": 3} if taken else {"parse": 9}
    about = {"id": "x", "asks": {"parse": 3 if taken else 4}, "before": before, "instances": 1}
    Journal(tmp_path).append(Entry(moment(), "asks", about))  # the last that the killed one wrote
    again, _, _ = service_of(flink, tmp_path)
    again.step()
    assert ("taken" if taken else "not taken") in kinds(tmp_path)[4:]
    assert len(flink.puts) == 1


def test_flink_that_is_not_there_is_a_reason_to_do_nothing(flink, tmp_path):
    service, _, _ = service_of(flink, tmp_path)
    flink.fails = ("GET",)
    assert "HTTP 500" in service.step().held[0]
    flink.fails = ()
    assert service.step().asks


def test_with_a_full_disk_nothing_is_asked_for(flink, tmp_path):
    (tmp_path / FILE).symlink_to("/dev/full")
    service, _, _ = service_of(flink, tmp_path)
    assert "No space left" in service.step().held[0]
    assert flink.puts == []


def test_half_a_line_is_no_entry_and_the_next_begins_on_its_own(tmp_path):
    journal = Journal(tmp_path)
    journal.append(Entry(moment(), "resumed", {}))
    with (tmp_path / FILE).open("a") as file:
        file.write('{"kind": "asks", "id": "x", "as')
    journal.append(Entry(moment(), "paused", {"why": "paused"}))
    assert kinds(tmp_path) == ["resumed", "paused"]


def test_an_entry_of_another_kind_of_file_is_named_with_its_line(tmp_path):
    (tmp_path / FILE).write_text('{"kind": "asks"}\n')
    with pytest.raises(StoreError, match="line 1 is no entry"):
        list(Journal(tmp_path).read())


def test_what_cannot_be_written_leaves_no_trace(tmp_path):
    journal = Journal(tmp_path)
    journal.append(Entry(moment(), "resumed", {}))
    size = (tmp_path / FILE).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        with pytest.raises(SetupError, match="nothing is changed"):
            journal.append(Entry(moment(), "paused", {"why": "x"}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / FILE).stat().st_size == size


def test_a_service_that_is_told_to_end_finishes_its_step_and_hands_back(flink, tmp_path):
    service, acting, _ = service_of(flink, tmp_path)
    serve(service, acting, 0.01, lambda _: service.ending.set())
    assert kinds(tmp_path) == ["began", "job", "asks", "taken", "ended"]
    assert told(tmp_path)[-1].startswith(
        "hands the job back; it asks for at most parse 3, store 2, at first"
    )
    service.step()  # and nothing is asked for any more
    assert len(flink.puts) == 1


HOLDER = """
import sys, time
from pathlib import Path
from include.runs.measurements.locks import alone
with alone(Path(sys.argv[1]), "act"):
    print("held", flush=True)
    time.sleep(300)
"""


def test_one_service_acts_with_a_state_until_it_is_dead(flink, tmp_path):
    service, acting, _ = service_of(flink, tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="another service acts"):
            serve(service, acting, 0.01, lambda _: service.ending.set())
        holder.kill()
    serve(service, acting, 0.01, lambda _: service.ending.set())
    assert kinds(tmp_path)[0] == "began"
