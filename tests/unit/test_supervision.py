"""Services that end are started again, with real processes; what cannot stay is given up."""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from infra.airflow import client
from infra.airflow.local import main, remember, under_way, welcome
from infra.airflow.processes import processes_of
from infra.airflow.supervision import MOST_STARTS, CannotStay, Service, Supervisor, how_it_ended
from tests.http_server import sends, serving

DEADLINE_S = 60.0


class Watched(Supervisor):
    """Two services, what was said of them, and who was started."""

    def __init__(self, *services: Service) -> None:
        self.said: list[str] = []
        self.pids: list[list[int]] = []
        super().__init__(
            services, dict(os.environ), self.said.append, lambda pids: self.pids.append(list(pids))
        )

    def tend_until(self, holds: Callable[[], bool]) -> None:
        end_s = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < end_s, self.said
            self.tend()
            time.sleep(0.01)


@contextmanager
def supervised(*services: Service) -> Iterator[Watched]:
    watched = Watched(*services)
    try:
        yield watched
    finally:
        watched.stop()


def shell(folder: Path, script: str, name: str = "scheduler") -> Service:
    return Service(name, ["sh", "-c", script], folder / f"{name}.log")


def test_a_killed_service_comes_back_and_the_other_stays(tmp_path: Path) -> None:
    forever = "sleep 600 & wait"
    with supervised(shell(tmp_path, forever), shell(tmp_path, forever, "triggerer")) as watched:
        watched.tend_until(lambda: len(watched.pids) == 2)
        scheduler, triggerer = watched.pids[-1]
        assert len(processes_of(triggerer)) >= 1
        os.kill(scheduler, signal.SIGKILL)
        watched.tend_until(lambda: len(watched.pids) == 3)
        again, same = watched.pids[-1]
        assert (again != scheduler, same) == (True, triggerer)
        assert processes_of(scheduler) == [], "what it had begun ends with it"
        (line,) = watched.said
        assert line.startswith("scheduler was killed by SIGKILL (signal 9) after ")
        assert line.endswith("; starting it again in 1 s")
    assert processes_of(again) == processes_of(triggerer) == []


def test_a_service_that_cannot_stay_is_given_up_with_its_reason(tmp_path: Path) -> None:
    service = shell(tmp_path, "echo no such table: job; exit 3")

    def at_once() -> bool:
        service.due_s = 0.0
        return False

    with supervised(service) as watched, pytest.raises(CannotStay) as given_up:
        watched.tend_until(at_once)
    message = str(given_up.value)
    assert f"scheduler ended with exit code 3, {MOST_STARTS} times in a row" in message
    assert "no such table: job" in message
    waits = [line.rsplit("in ", 1)[1] for line in watched.said]
    assert waits == ["1 s", "2 s", "4 s", "8 s", "16 s"]


def test_a_service_that_had_stayed_is_started_again_for_ever(tmp_path: Path) -> None:
    service = shell(tmp_path, "exit 1")
    with supervised(service) as watched:
        for _ in range(2 * MOST_STARTS):
            watched.tend_until(lambda: service.process is not None)
            service.began_s -= 3600
            watched.tend_until(lambda: service.process is None)
            service.due_s = 0.0
    assert {line.split(" after ")[1] for line in watched.said} == {
        "60 min; starting it again in 1 s"
    }


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (-15, "was killed by SIGTERM (signal 15)"),
        (-40, "was killed by signal 40"),
    ],
)
def test_the_end_is_told_in_words(code: int, words: str) -> None:
    assert how_it_ended(code) == words


def test_the_password_is_shown_to_eyes_and_kept_out_of_files(tmp_path: Path) -> None:
    passwords = tmp_path / "passwords.json"
    passwords.write_text(json.dumps({"admin": "only-for-eyes"}))
    text = welcome("http://127.0.0.1:8080", passwords, to_terminal=True)
    for line in ("open       http://127.0.0.1:8080", "log in as  admin", "only-for-eyes"):
        assert line in text
    logged = welcome("http://127.0.0.1:8080", passwords, to_terminal=False)
    assert "only-for-eyes" not in logged
    assert str(passwords) in logged


def test_airflow_without_its_environment_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", "")
    monkeypatch.delenv("TIDEBENCH_DATA_ROOT", raising=False)
    assert main(["up"]) == 2
    assert "AIRFLOW_HOME and TIDEBENCH_DATA_ROOT are not set" in capsys.readouterr().out


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1"])
def test_what_is_no_port_is_told(
    port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AIRFLOW_HOME", "TIDEBENCH_DATA_ROOT"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("TIDEBENCH_PORT", port)
    assert main(["up"]) == 2
    assert "give a number from 1 to 65535" in capsys.readouterr().out


def test_every_wrong_setting_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AIRFLOW_HOME", "TIDEBENCH_DATA_ROOT"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("TIDEBENCH_PORT", "http")
    monkeypatch.setenv("TIDEBENCH_SCHEDULES", "reap, nightly")
    assert main(["up"]) == 2
    told = capsys.readouterr().out
    assert "give a number from 1 to 65535" in told
    assert "names nightly; it may name nightly_reproducibility, reap, shadow_report." in told
    assert not (tmp_path / "none").exists()


def test_services_are_remembered_whole(tmp_path: Path) -> None:
    """Whoever reads meanwhile has all of them, before or after."""
    path, before = tmp_path / "services.json", tmp_path / "before"
    remember(path, [])
    before.hardlink_to(path)
    remember(path, [os.getppid()])
    assert len(json.loads(before.read_text())) == 1
    assert under_way(path) == [os.getpid(), os.getppid()]


def test_a_server_that_is_too_busy_to_answer_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        asked.append(handler.path)
        busy = len(asked) == 1
        sends(handler, 500 if busy else 200, b'{"state": "success", "task_instances": []}')

    monkeypatch.setattr(client, "POLL_S", 0.0)
    with serving(answer) as port:
        airflow = client.Client(f"http://127.0.0.1:{port}")
        assert airflow.finish("experiment", "a run", deadline_s=DEADLINE_S) == "success"
    assert len(asked) == 3


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_a_first_experiment_without_its_file_of_passwords_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["first_experiment", "http://127.0.0.1:9", "no.json"])
    with pytest.raises(SystemExit, match=r"No such file or directory: 'no.json'"):
        runpy.run_module("infra.airflow.first_experiment", run_name="__main__")
