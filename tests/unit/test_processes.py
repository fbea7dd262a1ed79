"""Processes that outlive who started them: found without a note of theirs, and gone once ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from include.testbeds.flink.reap import give_back_run, processes_of
from include.testbeds.flink.state import run_folder as flink_folder
from include.testbeds.live.files import run_folder
from include.testbeds.live.hosts.local import hosts
from include.testbeds.live.hosts.local.hosts import LocalHosts, leases_of, take_number
from include.testbeds.live.processes import DetachedProcess, process_stat, started_for
from include.testbeds.live.replay import ReplayProcess
from infra.airflow import processes
from tests.live.world import wait_until

SLEEP = ("sleep", "600")


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[[Path], DetachedProcess]]:
    """Starts a process for a file, as one that is killed before it writes that."""
    begun: list[DetachedProcess] = []

    def start(held_by: Path) -> DetachedProcess:
        begun.append(DetachedProcess.start(SLEEP, tmp_path / "log", held_by=held_by))
        wait_until(lambda: started_for(held_by) != [], "it has its environment", 10)
        return begun[-1]

    yield start
    for process in begun:
        process.end(first=signal.SIGKILL)


def test_a_process_is_found_by_its_file_or_a_folder_above_and_its_children_are_not(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", "import os, time; os.fork(); time.sleep(600)"]
    path = tmp_path / "run" / "processes" / "host-1.json"
    process = DetachedProcess.start(command, tmp_path / "log", held_by=path)
    try:
        wait_until(lambda: started_for(path) != [], "it has its environment", 10)
        for place in (path, path.parent, tmp_path / "run"):
            assert started_for(place) == [(path, process)]
        assert started_for(tmp_path / "ru") == started_for(path / "x") == []
    finally:
        process.end(first=signal.SIGKILL)
    assert started_for(path) == []


def test_a_process_that_ended_leaves_no_zombie(tmp_path: Path) -> None:
    process = DetachedProcess.start(["true"], tmp_path / "log")
    wait_until(lambda: not process.alive, "it ends", 10)
    assert process_stat(process.pid) == []
    other = subprocess.Popen(["false"])
    wait_until(lambda: process_stat(other.pid)[0] == "Z", "the other ends", 10)
    assert not DetachedProcess(other.pid, 1).alive
    assert other.wait() == 1, "its parent gets to know how it ended"


def test_a_process_may_have_any_name(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"caf\xc3")  # noqa: PTH118 (no text)
    Path(os.fsdecode(path)).symlink_to(shutil.which("sleep") or "")
    process = subprocess.Popen([path, "600"])
    try:
        wait_until(lambda: DetachedProcess.running(process.pid).alive, "it runs", 10)
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_bytes()[:3] == b"caf", "it", 10)
        assert process_stat(process.pid)[3] == str(os.getsid(0))
        assert process.pid in processes.processes_of(os.getsid(0))
        assert processes.born(process.pid) == process_stat(process.pid)[19]
    finally:
        process.kill()
        process.wait()


def test_a_task_manager_that_nobody_could_write_down_is_given_back(tmp_path, monkeypatch, begin):
    monkeypatch.setenv("TIDEBENCH_FLINK_STATE", str(tmp_path))
    process = begin(flink_folder("a-run") / "processes" / "host-1.json")
    assert processes_of("a-run") == {f"host-1:{process.pid}": process}
    give_back_run("a-run")
    assert not process.alive


def test_a_data_provider_that_nobody_could_write_down_ends_with_its_run(
    tmp_path, monkeypatch, begin
):
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    process = begin(run_folder("a-run") / "provider.pid.json")
    ReplayProcess("a-run").end()
    assert not process.alive


@pytest.fixture
def local(tmp_path, monkeypatch):
    """The hosts of a run, without a script that makes or removes them."""
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    monkeypatch.setattr(hosts, "script", lambda *command: "")
    return LocalHosts("a-run")


def test_a_boot_that_nobody_could_write_down_ends_before_its_host_is_removed(
    local, tmp_path, monkeypatch, begin
):
    """It would make the host anew, which then has no lease."""
    number = take_number("a-run")
    process = begin(tmp_path / "leases" / f"{number}.json")
    alive = []
    monkeypatch.setattr(hosts, "script", lambda *command: alive.append(process.alive))
    local.give_back(str(number))
    assert alive == [False]


def test_a_host_that_is_given_back_twice_at_once_is_removed_once(local, monkeypatch):
    """The second would find it half removed, or take the next host of that number."""
    number, removed = str(take_number("a-run")), []

    def remove(*command):
        removed.append(command)
        if len(removed) == 1:
            other.start()
            time.sleep(0.3)
        return ""

    other = Thread(target=local.give_back, args=(number,))
    monkeypatch.setattr(hosts, "script", remove)
    local.give_back(number)
    other.join(10)
    assert removed == [("hosts.sh", "rm", number)]
    assert leases_of("a-run") == []


def test_a_host_whose_boot_ends_as_one_looks_has_booted(local, tmp_path, monkeypatch):
    number = take_number("a-run")

    def ends(_):
        log = tmp_path / "leases" / f"{number}.log"
        log.write_text("host 1 up tcp://10.78.0.11:2375 cpu=1 memory=1g start_ms=900\n")
        return False

    monkeypatch.setattr(DetachedProcess, "alive", property(ends))
    assert local.boot_failed(str(number)) == ""
    assert local.endpoint(str(number)) == "tcp://10.78.0.11:2375"
