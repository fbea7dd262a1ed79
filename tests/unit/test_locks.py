"""Two at once: the second waits and says for whom. A lock of a dead process is none."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from include.model.errors import SetupError, StoreError
from include.runs.measurements.locks import alone, lock_of, locked
from include.runs.stages import run_all
from infra.airflow.processes import processes_of
from tests.advise.synthetic import write_small_recording
from tests.builders import run_spec
from tests.command_line import said
from tests.full_disk import no_file_above
from tests.live.world import wait_until

REPOSITORY = Path(__file__).parents[2]
HOLDS = """
import sys, time
from pathlib import Path
from include.runs.measurements.locks import alone
with alone(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    time.sleep(60)
"""
SPEC = {"name": "two", "controllers": ["btu", "threshold"], "patterns": "random_walk_1",
        "btus_min": 10, "seeds": "1-2", "duration_min": 60}  # fmt: skip


@contextmanager
def holding(folder, name):
    """Another process that has the lock until it is killed."""
    command = [sys.executable, "-c", HOLDS, folder, name]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@contextmanager
def held_until_waited_for(folder, name, caplog):
    """Another process has the lock until somebody waits for it, and somebody does."""
    waits = f"{name}: process"
    with holding(folder, name) as process:

        def end_once_it_is_waited_for():
            while waits not in caplog.text and process.poll() is None:
                time.sleep(0.1)
            process.kill()

        threading.Thread(target=end_once_it_is_waited_for, daemon=True).start()
        yield
    assert waits in caplog.text


@pytest.fixture
def holder(tmp_path):
    with holding(tmp_path, "run-1") as process:
        yield process


def test_who_comes_second_waits_and_says_for_whom(tmp_path, holder, caplog):
    assert locked(tmp_path) == ["run-1"]
    expected = pytest.raises(StoreError, match=f"process {holder.pid} is at it since")
    with expected, alone(tmp_path, "run-1", wait_s=0.3):
        pass
    assert (
        len([message for message in caplog.messages if "waiting until it is through" in message])
        == 1
    )
    with alone(tmp_path, "run-2", wait_s=0.3):
        assert locked(tmp_path) == ["run-1"], "its own is no other's"


def test_a_lock_of_a_dead_process_is_no_lock(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert lock_of(tmp_path, "run-1").is_file()
    assert locked(tmp_path) == []
    with alone(tmp_path, "run-1", wait_s=1), alone(tmp_path, "run-1", wait_s=1):
        pass
    assert not lock_of(tmp_path, "run-1").exists()


def test_a_folder_that_comes_and_goes_is_made_again(tmp_path, monkeypatch):
    """Between a mkdir that finds it and the look at what it found, another process removed it."""
    make, tries = Path.mkdir, [FileExistsError(), FileNotFoundError()]

    def removed_meanwhile(folder, *args, **options):
        if folder == lock_of(tmp_path, "a run").parent and tries:
            raise tries.pop()
        make(folder, *args, **options)

    monkeypatch.setattr(Path, "mkdir", removed_meanwhile)
    with alone(tmp_path, "a run"):
        assert lock_of(tmp_path, "a run").is_file()
    assert not tries


@pytest.mark.parametrize("put", [Path.touch, lambda path: path.symlink_to("a disk that is off")])
def test_what_is_in_the_place_of_the_folder_is_told(put, tmp_path):
    put(lock_of(tmp_path, "a run").parent)
    with pytest.raises(SetupError, match="cannot be written"), alone(tmp_path, "a run"):
        pass


def test_a_full_disk_takes_no_lock_and_nobody_waits_for_it(tmp_path):
    with no_file_above(0), pytest.raises(SetupError, match="free some space"), alone(tmp_path, "a"):
        pass
    with alone(tmp_path, "a", wait_s=0.3):
        pass


def test_a_folder_that_becomes_read_only_hides_nothing(tmp_path, monkeypatch):
    def refuse(path, missing_ok=False):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(SetupError, match="what went wrong"), alone(tmp_path, "a run"):
        raise SetupError("what went wrong")
    monkeypatch.undo()
    assert lock_of(tmp_path, "a run").is_file()
    assert not locked(tmp_path)
    with alone(tmp_path, "a run", wait_s=0.3):
        pass


def test_a_file_system_without_locks_is_told_and_nobody_is_waited_for(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(SetupError, match="has locks"), alone(tmp_path, "a run", wait_s=0.3):
        pass


def test_advise_and_report_wait_for_another_advice_in_the_folder(tmp_path, caplog):
    write_small_recording(tmp_path / "job.csv")
    asked = ["--objective", "90 % within 1 s", "--seeds", "1", "--controllers", "fixed"]
    advise = "advise", tmp_path / "job.csv", *asked, "--out", tmp_path / "out"
    for command in advise, ("report", tmp_path / "out"):
        caplog.clear()
        with held_until_waited_for(tmp_path, "advice in out", caplog):
            told = said(*command)
        assert "holds 90 % within 1 s" in told


def started(folder: Path, *arguments: str, **changes: object) -> subprocess.Popen[str]:
    (folder / "two.yaml").write_text(json.dumps(SPEC | changes))
    return subprocess.Popen(
        [sys.executable, "-m", "include.cli", *arguments], cwd=REPOSITORY, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"TIDEBENCH_DATA_ROOT": str(folder)},
    )  # fmt: skip


@pytest.mark.long
def test_two_runs_of_one_experiment_measure_everything_once(tmp_path):
    command = ("run", str(tmp_path / "two.yaml"), "--root", str(tmp_path))
    both = [started(tmp_path, *command, duration_min=20) for _ in range(2)]
    ends = [(process.communicate(timeout=300), process.returncode) for process in both]
    assert [code for _, code in ends] == [0, 0], ends
    output = "".join(out for (out, _), _ in ends)
    assert "FAILED" not in output
    assert "interrupted before" not in output
    assert output.count("reused") == 4


FORKED = """
import time
from concurrent.futures import ProcessPoolExecutor
from include.cli.interrupt import ends_at_once

ends_at_once("Interrupted.")
with ProcessPoolExecutor(2) as pool:
    pool.submit(time.sleep, 60)
    pool.submit(time.sleep, 60)
    print("forked", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_parent_ends_its_forked_workers_too(number):
    command = [sys.executable, "-c", FORKED]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline() == "forked\n"
        workers = psutil.Process(process.pid).children()
        assert len(workers) == 2
        process.send_signal(number)
        _, error = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert error.split() == ["Interrupted."]
    assert psutil.wait_procs(workers, timeout=10)[1] == []


FILLING = """
import sys, time
from pathlib import Path
from threading import Thread
from include.cli.interrupt import ends_at_once

scratch = Path(sys.argv[1])
ends_at_once("Interrupted.", scratch)
(scratch / "copy").mkdir(parents=True)

def fill():
    for number in range(10**9):
        (scratch / "copy" / str(number)).touch()

for _ in range(4):
    Thread(target=fill, daemon=True).start()
while not (scratch / "copy" / "99").exists():
    time.sleep(0.01)
print("fetched", flush=True)
time.sleep(60)
"""


def test_a_copy_goes_with_its_process_though_threads_still_fill_it(tmp_path):
    command = [sys.executable, "-c", FILLING, tmp_path / "copies" / "one"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"fetched\n"
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    assert list((tmp_path / "copies").iterdir()) == []


REPORTING = """
import sqlite3, sys, time
from pathlib import Path
from tempfile import TemporaryDirectory
from include.cli import results
from include.studies import publish

def conclude(here, runs, database, **_):
    sqlite3.connect(database.removeprefix("sqlite:///"))
    with TemporaryDirectory(prefix="tidebench-rows-"):
        print("building", flush=True)
        time.sleep(60)

publish.conclude = conclude
results.DEFAULT_ROOT = Path(sys.argv[2])
results.report(sys.argv[1])
"""


@pytest.mark.parametrize("where", [str, Path.as_uri])
def test_a_report_that_is_ended_leaves_no_temporary_rows(tmp_path, where):
    """Of a URI it has a database, though nothing was measured on this machine."""
    folder, temporary = tmp_path / "mine", tmp_path / "temporary"
    (folder / "runs" / "r").mkdir(parents=True)
    (folder / "runs" / "r" / "manifest.json").write_text("{}")
    temporary.mkdir()
    command = [sys.executable, "-c", REPORTING, where(folder), tmp_path / "var"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe) as process:
        assert process.stdout.readline().startswith(b"measured by other code")
        assert process.stdout.readline() == b"building\n"
        assert list(temporary.iterdir())
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 143
    assert list(temporary.iterdir()) == []


ENDED = """
import os, sys
from include.cli.interrupt import ends_as_by_ctrl_c

ends_as_by_ctrl_c()
try:
    os.kill(os.getpid(), int(sys.argv[1]))
except KeyboardInterrupt:
    os.kill(os.getpid(), int(sys.argv[1]))  # a second one does not end the release
    print("released")
else:
    print("nobody sent it")
"""


@pytest.mark.parametrize(
    ("number", "nohup", "said"),
    [
        (signal.SIGTERM, [], "released\n"),
        (signal.SIGHUP, [], "released\n"),
        (signal.SIGHUP, ["nohup"], "nobody sent it\n"),
    ],
)
def test_what_a_run_holds_is_released_at_a_signal_as_by_ctrl_c(number, nohup, said):
    done = subprocess.run(
        [*nohup, sys.executable, "-c", ENDED, str(int(number))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, said), done.stderr


@pytest.mark.long
def test_an_interrupted_run_answers_within_two_seconds_and_goes_on(tmp_path):
    process = started(tmp_path, "run", str(tmp_path / "two.yaml"), "--root", str(tmp_path))
    wait_until(lambda: list(tmp_path.glob("two/runs/*/commits")), "a run is under way", 120)
    begin_s = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert time.monotonic() - begin_s < 10, "two seconds, on a machine with nothing else to do"
    assert process.returncode == 130
    assert "Interrupted. What is complete is kept; tidebench run " in error
    wait_until(lambda: not processes_of(process.pid), "no process of it is left", 20)
    done = started(tmp_path, "run", str(tmp_path / "two.yaml"), "--root", str(tmp_path))
    out, _ = done.communicate(timeout=300)
    assert done.returncode == 0, out


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("where", [str, Path.as_uri])
def test_an_interrupted_report_answers_though_spark_has_a_handler_of_its_own(
    tmp_path, monkeypatch, where
):
    """Of a URI it leaves no copy."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    run_all(run_spec(experiment="two", duration_min=10, btu_min=10), tmp_path)
    process = started(tmp_path, "report", where(tmp_path / "two"))
    children = psutil.Process(process.pid).children
    wait_until(lambda: "java" in [child.name() for child in children(True)], "Spark", 120)
    time.sleep(2)  # for the session of Spark to be there, on most machines
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted. What was published before stands; tidebench report " in error
    assert not (tmp_path / "two" / "published").exists()
    assert not list((tmp_path / "temporary").rglob("manifest.json"))
