"""The commands around an acting service, and how advice becomes a wish."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from include.cli.service import polling
from include.model.errors import SetupError
from include.service.act import Wish
from include.service.guard import Permission
from include.service.history import Entry
from include.service.journal import ChangeJournal
from include.service.pause import pause, why_paused
from include.service.record import Recorder
from include.service.shadow import ShadowState
from include.service.shadow_loop import lines_of, wish_of
from tests.command_line import refused, said
from tests.service.acting_world import advised, moment


def test_advice_that_no_longer_holds_or_failed_is_no_wish():
    rows = [
        advised("map", 3),
        advised("sink", 4, holds_until_s=99),
        advised("join", 5, failed=True),
    ]
    assert wish_of(rows, 100.0) == Wish({"map": 3}, {"map": "it is late"})


def test_a_terminal_is_told_what_is_asked_for_held_and_cut():
    asks = Permission(asks={"map": 3}, instances=1, cuts={"sink": "at most 1 at once"})
    assert list(lines_of(asks, really=False)) == [
        "sink does not get what is wanted: at most 1 at once",
        "would ask for map 3",
    ]
    assert list(lines_of(asks, really=True))[-1] == "asks for map 3"
    back = Permission({"map": 2}, back=True)
    told = [*lines_of(back, really=False), *lines_of(back, really=True)]
    assert told == ["would go back to map 2", "goes back to map 2"]
    assert list(lines_of(Permission(held=("paused",)), really=True)) == ["nothing changes: paused"]
    assert list(lines_of(Permission(), really=True)) == []


def test_a_line_that_a_full_disk_keeps_out_of_a_log_ends_no_service(monkeypatch):
    fails: list[OSError] = [OSError(errno.ENOSPC, "No space left on device"), BrokenPipeError()]

    def no_room(line, err):
        raise fails.pop(0)

    monkeypatch.setattr("typer.echo", no_room)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # of the tests it stays
    told = polling("http://127.0.0.1:1", "orders", 15.0, 60.0).told
    told("this poll is lost")
    with pytest.raises(BrokenPipeError):
        told("nobody reads on")


def test_the_switch_and_the_journal_on_the_command_line(tmp_path):
    for number in range(3):
        ChangeJournal(tmp_path).append(Entry(moment(number), "paused", {"why": f"pause {number}"}))
    assert "tidebench resume" in said("pause", tmp_path, "--why", "release day")
    assert "release day" in why_paused(tmp_path)
    assert "resumed" in said("resume", tmp_path)
    assert "was not paused" in said("resume", tmp_path)
    (tmp_path / "paused.json").mkdir()  # cannot be removed as a file is
    assert "so changes stay stopped" in refused("resume", tmp_path)
    assert said("journal", tmp_path, "--last", 2).splitlines() == [
        "2025-11-25 12:00:01Z  pause 1",
        "2025-11-25 12:00:02Z  pause 2",
    ]


@pytest.mark.parametrize(
    ("writes", "name"),
    [
        (lambda state: pause(state, "release day"), "paused.json"),
        (lambda state: ChangeJournal(state).append(Entry(moment(), "x", {})), "journal.jsonl"),
        (ShadowState("orders").save, "state.json"),
        (lambda state: Recorder(state, "orders", "http://h:1", 5).begin(0.0), "recording.json"),
    ],
)
def test_what_a_power_cut_may_not_take_is_on_disk_with_its_name(
    tmp_path, monkeypatch, writes, name
):
    synced, fsync = [], os.fsync

    def counted(file):
        synced.append(Path(f"/proc/self/fd/{file}").readlink())
        fsync(file)

    monkeypatch.setattr("os.fsync", counted)
    writes(tmp_path)
    assert len(synced) == 2
    assert name in synced[0].name
    assert synced[1] == tmp_path


def test_a_pause_whose_name_cannot_be_synced_fails_and_holds_all_the_same(tmp_path, monkeypatch):
    fsync = os.fsync

    def no_folder(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(file)

    monkeypatch.setattr("os.fsync", no_folder)
    with pytest.raises(SetupError, match=r"paused\.json is written, but .* cannot be synced"):
        pause(tmp_path, "release day")
    assert why_paused(tmp_path).startswith("paused since ")
    assert why_paused(tmp_path).endswith(": release day")


def test_a_pause_that_ends_while_somebody_looks_does_not_hold(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.exists", lambda path: True)  # it was there a moment ago
    assert why_paused(tmp_path) == ""


def test_a_pause_that_cannot_be_written_fails_and_does_not_hold(tmp_path, monkeypatch):
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SetupError, match="No space left on device"):
        pause(tmp_path, "release day")
    assert why_paused(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["pause", "resume", "journal", "keda"])
def test_a_state_that_is_not_there_is_told(tmp_path, command):
    assert "name the --state of shadow or act" in refused(command, tmp_path / "none")


def test_a_state_that_only_its_service_may_read_is_told(tmp_path, monkeypatch):
    def denied(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", denied)
    assert f"{tmp_path} cannot be read; run this as" in refused("journal", tmp_path)


@pytest.mark.parametrize("command", ["pause", "resume", "journal"])
def test_a_folder_that_no_service_acts_from_is_told(tmp_path, command):
    assert "has no journal.jsonl; name the --state of act" in refused(command, tmp_path)
    assert why_paused(tmp_path) == ""


def test_everything_is_checked_before_flink_is_asked(tmp_path):
    (tmp_path / "limits.yaml").write_text("quiet: [{begin: 25}]\n")
    given = ("--state", tmp_path / "s", "--limits", tmp_path / "limits.yaml", "--job", "orders")
    wrong = ("--controller", "tied", "--prices", "free", "--for", "soon", "--page", "here")
    often = ("--every", "-5")
    assert f": {3 + 5} problems\n" in refused("act", "http://127.0.0.1:1", *wrong, *often, *given)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--controller", "tied"), "--controller: unknown controller 'tied'"),
        (("--controller", "fixed"), "--controller: fixed has to know the peak"),
        (("--controller", "hpa", "--set", "tide.care=2"), "--controller: --set tide.care: write"),
    ],
)
def test_an_error_names_the_options_as_they_were_typed(tmp_path, wrong, told):
    given = ("--state", tmp_path / "s", "--limits", tmp_path / "none.yaml", "--job", "orders")
    why = refused("act", "http://127.0.0.1:1", *wrong, *given)
    assert f"\n  - {told}" in why
    assert "--controllers" not in why
