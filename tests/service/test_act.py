"""An acting service over HTTP: its journal, its switch, and what comes of failures on the way."""

from __future__ import annotations

import errno

import pytest

from include.model.errors import SetupError, StoreError
from include.service import act
from include.service.clock import Timestamp
from include.service.history import Entry
from include.service.journal import FILE, ChangeJournal
from include.service.pause import pause, resume
from tests.full_disk import no_file_above
from tests.service.acting_world import LIMITS, requests
from tests.service.fake_flink import answers_500, hangs_up, sends_on


def test_a_change_is_asked_for_taken_and_up_and_a_colleague_can_read_why(flink, acting):
    service = acting()
    assert service.step().asks == {"map": 3}
    service.counts["map"] = 20
    service.step()
    assert flink.world.most == {"source": 1, "map": 7, "sink": 1}
    assert "\n".join(service.told).splitlines() == [
        f"the job is {flink.world.job} and asks for at most map 2, sink 1, source_events 1",
        "asks for map 2 -> 3 (the queue grows)",
        "Flink takes map 3",
        "map 3 run",
        "asks for map 3 -> 7 (the queue grows)",
        "    map does not get the 20 that are wanted: at most 4 at once",
        "Flink takes map 7",
    ]


def test_a_dry_run_says_once_what_it_would_do_and_asks_for_nothing(flink, acting):
    service = acting(really=False)
    service.step()
    service.step()
    assert requests(flink) == []
    assert service.kinds == ["job", "would"]
    assert service.told[1] == "would ask for map 2 -> 3 (the queue grows)"


def test_a_dry_run_also_says_that_a_bound_above_the_limits_would_be_replaced(flink, acting):
    flink.world.counts["map"] = flink.world.most["map"] = 9
    service = acting(really=False)
    service.counts = {"map": 9}
    assert service.step().asks == {"map": 8}
    assert service.told[1].startswith("would ask for map 9 -> 8 (the queue grows)")


def test_a_reason_that_comes_and_goes_is_written_once_between_two_changes(flink, acting, tmp_path):
    service = acting()
    pause(tmp_path, "release day")
    for running in (True, False) * 3:
        assert "release day" in service.step(checkpoint_running=running).held[0]

    assert requests(flink) == []
    assert service.kinds == ["paused", "job", "held"]
    assert "nothing changes, map 3 wanted:\n    paused since" in service.told[2]

    assert resume(tmp_path)
    assert service.step().asks == {"map": 3}
    service.step()
    service.counts = {"map": 4}
    service.step(checkpoint_running=True)
    assert service.kinds[3:] == ["resumed", "asks", "taken", "up", "held"]


def test_advice_that_is_not_followed_is_in_the_journal_with_the_reason(flink, acting):
    service = acting()
    service.why_not = "it is the first after a start"
    assert service.step().held == (service.why_not,)
    assert requests(flink) == []
    assert service.told[-1] == f"nothing changes, map 3 wanted:\n    {service.why_not}"
    service.why_not = ""
    assert service.step().asks == {"map": 3}


@pytest.mark.parametrize(("really", "wanted"), [(False, 3), (True, 20)])
def test_what_would_change_between_checkpoints_is_written_once(flink, acting, really, wanted):
    """It may change, or the limits allow no more, at every other reading."""
    flink.world.counts["map"] = flink.world.most["map"] = 8 if really else 2
    service = acting(really=really)
    service.counts = {"map": wanted}
    for running in (False, True) * 3:
        service.step(checkpoint_running=running)
    assert service.kinds == (["job", "held", "held"] if really else ["job", "would", "held"])


def test_a_change_that_took_long_to_write_down_is_not_sent(flink, acting, monkeypatch):
    monkeypatch.setattr(act, "WRITES_IN_S", -1.0)
    service = acting()
    assert "to write it down" in service.step().held[0]
    assert service.kinds == ["job", "asks", "not sent"]
    assert requests(flink) == []


def test_a_switch_that_cannot_be_read_stops_all_changes(flink, acting, tmp_path):
    (tmp_path / "paused.json").write_text("{")
    assert "cannot be read" in acting().step().held[0]
    assert requests(flink) == []


def test_a_job_that_is_deployed_again_is_known_as_such(flink, acting):
    service = acting(between_changes_s=60)
    service.step()
    flink.world.job = "b" * 32
    assert "new to this service" in service.step().held[0]
    assert f"the job was deployed again as {'b' * 32}" in "".join(service.told)


def test_a_job_that_a_change_takes_down_gets_what_it_had_and_is_left_alone_for_a_while(
    flink, acting
):
    service = acting()
    service.step()
    flink.changed = {"state": "RESTARTING"}
    service.ahead_s = LIMITS["up_within_s"] + 1
    assert service.step(checkpoint_running=True).back
    assert flink.world.most["map"] == 2
    flink.changed = {}
    for _ in range(2):  # that what it had comes up is no reason to try again at once
        assert "the last change did not come up" in service.step().held[-1]
    assert service.told[1:] == [
        "asks for map 2 -> 3 (the queue grows)",
        "Flink takes map 3",
        "map 3 did not come up, map 3 run",
        "goes back to map 2, as the job is down since the last change",
        "Flink takes map 2",
        "map 2 run",
        service.told[-1],
    ]


@pytest.mark.parametrize(
    ("fault", "says"),
    [(answers_500, "HTTP 500"), (sends_on, "HTTP 302"), (hangs_up, "does not answer")],
)
def test_a_request_that_fails_is_not_repeated_at_once(flink, acting, fault, says):
    service = acting()
    flink.fault = lambda handler: handler.command == "PUT" and fault(handler)
    service.step()
    assert says in service.told[-1]
    flink.fault = lambda handler: False
    assert "not up yet" in service.step().held[0]  # it may have been carried out: two minutes
    assert service.kinds == ["job", "asks", "no answer", "held"]
    assert len(requests(flink)) == 1
    assert flink.world.most["map"] == 2


def test_a_change_whose_answer_a_full_disk_keeps_out_is_told_and_found_out(
    flink, acting, monkeypatch
):
    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    service = acting()
    with monkeypatch.context() as patched:
        fills = lambda handler: patched.setattr("os.fsync", full)  # noqa: E731
        flink.fault = lambda handler: handler.command == "PUT" and fills(handler)
        assert service.step().asks == {"map": 3}
    service.step()
    assert service.kinds == ["job", "asks", "taken", "up"]


def test_a_service_that_is_told_to_end_asks_for_nothing_more_and_hands_back(flink, acting):
    service = acting()
    service.actor.begin()
    service.step()
    service.ended, service.counts = True, {"map": 5}
    service.step()
    service.actor.end()
    assert len(requests(flink)) == 1
    assert service.told[0].startswith("tide acts on orders (process ")
    assert service.told[-1] == (
        "hands the job back; it asks for at most map 3, sink 1, source_events 1, "
        "at first it asked for map 2, sink 1, source_events 1"
    )


def test_what_the_job_asked_for_at_first_is_known_to_every_later_service(flink, acting):
    acting().step()
    later = acting()
    later.actor.begin()
    later.actor.end()  # without a step
    assert later.told[-1].endswith("at first it asked for map 2, sink 1, source_events 1")


def test_a_service_that_never_read_the_job_hands_nothing_back(acting):
    service = acting()
    service.actor.begin()
    service.actor.end()
    assert service.told[-1] == "ends; the job was never read"


def test_a_journal_makes_no_folder(tmp_path):
    with pytest.raises(SetupError, match="nothing is changed"):
        ChangeJournal(tmp_path / "gone").append(Entry(Timestamp.now(), "resumed", {}))
    assert not (tmp_path / "gone").exists()


def test_half_a_line_is_no_entry_and_the_next_begins_on_its_own(tmp_path):
    journal = ChangeJournal(tmp_path)
    journal.append(Entry(Timestamp.now(), "resumed", {}))
    with (tmp_path / FILE).open("a") as file:
        file.write('{"kind": "asks", "id": "x", "as')
    journal.append(Entry(Timestamp.now(), "paused", {"why": "paused"}))
    assert [entry.kind for entry in journal.read()] == ["resumed", "paused"]


@pytest.mark.parametrize("kind", ["asks", "up", "job"])
def test_an_entry_that_lacks_what_its_kind_has_is_named_with_its_line(tmp_path, kind):
    journal = ChangeJournal(tmp_path)
    journal.append(Entry(Timestamp.now(), "resumed", {}))
    journal.append(Entry(Timestamp.now(), kind, {}))
    with pytest.raises(StoreError, match="line 2 is no entry"):
        list(journal.read())


def test_a_line_of_another_kind_of_file_is_named(tmp_path):
    (tmp_path / FILE).write_text('{"kind": "resumed"}\n')
    with pytest.raises(StoreError, match="line 1 is no entry"):
        list(ChangeJournal(tmp_path).read())


def test_what_cannot_be_written_leaves_no_trace(tmp_path):
    journal = ChangeJournal(tmp_path)
    journal.append(Entry(Timestamp.now(), "resumed", {}))
    size = (tmp_path / FILE).stat().st_size
    with no_file_above(size + 10), pytest.raises(SetupError, match="nothing is changed"):
        journal.append(Entry(Timestamp.now(), "paused", {"why": "x"}))
    assert (tmp_path / FILE).stat().st_size == size
