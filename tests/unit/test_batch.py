"""Batches: the same results however they are shared out, and no run hurts another."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from include.cli.progress import Progress
from include.controllers import failures
from include.experiment.spec import RunSpec
from include.model.errors import TestbedError
from include.runs.batch import DIED, RunResult, require_complete, run_batch
from include.runs.stages import forget, provision, store_of
from include.testbeds import TESTBEDS
from tests.builders import begun, run_spec
from tests.digests import digests
from tests.live.world import wait_until


def a_spec(seed: int, **changes) -> RunSpec:
    usual = {"experiment": "batch", "controller": "btu-runtime", "btu_min": 2, "duration_min": 4}
    return run_spec(seed=seed, **(usual | changes))


SIDE_BY_SIDE = """
import sys
from dataclasses import replace
from pathlib import Path
from include.runs.batch import run_batch
from include.testbeds import TESTBEDS
from tests.unit.test_batch import a_spec

TESTBEDS["simulated"] = replace(TESTBEDS["simulated"], real_time=True)
specs = [a_spec(seed, duration_min=20_000, btu_min=20_000) for seed in (1, 2, 3)]
run_batch(specs, Path(sys.argv[1]), side_by_side=2)
"""
SPECS = [a_spec(3), a_spec(1), a_spec(2, controller="threshold")]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    root = tmp_path_factory.mktemp("alone")
    return run_batch(SPECS, root, processes=1), digests(root), root


def test_neither_the_processes_nor_a_run_that_fails_matter_to_the_others(alone, tmp_path):
    heard = []
    specs = [a_spec(1, pattern="zigzag"), *SPECS]
    failed, *results = run_batch(specs, tmp_path, processes=2, report=heard.append)
    assert [result.spec for result in results] == SPECS
    assert [result.summaries for result in results] == [result.summaries for result in alone[0]]
    assert sorted(run.spec.run_id for run in heard) == sorted(run.run_id for run in specs)
    assert digests(tmp_path) == alone[1]
    assert failed.outcome == "failed"
    with pytest.raises(TestbedError, match=r"1 of 4 runs failed(.|\n)*zigzag"):
        require_complete([failed, *results])


FAILING = """
from dataclasses import dataclass
from include.controllers.fixed import Fixed
from include.model.decision import Decision, Reason, Reasoned, StartInstance

WAITS = Reason.NOTHING_TO_DO

@dataclass(frozen=True, kw_only=True)
class Fails(Fixed):
    how: str

    def decide(self, memory, observation):  # where it begins
        return self.fail(memory)

    def fail(self, memory):
        if self.how == "interrupt":
            raise KeyboardInterrupt  # line of interrupt
        if self.how == "exit":
            raise SystemExit(3)  # line of exit
        if self.how == "loop":
            while True: len("x")  # line of loop
        if self.how == "raise":
            raise ValueError("no\\nrate")  # line of raise
        return {
            "nothing": None,
            "text": (memory, "wait"),
            "memory": (5, Decision((), "", WAITS)),
            "reason": (memory, Decision((), "", "nothing_to_do")),
            "sentence": (memory, Decision((), 5, WAITS)),
            "half": (memory, Decision((), "\\ud800", WAITS)),
            "step": (memory, Decision(("go",), "", WAITS)),
            "steps": (memory, Decision({}.keys(), "", WAITS)),
            "number": (memory, Decision((Reasoned(StartInstance(5, "h"), "", WAITS),), "", WAITS)),
        }[self.how]
"""


FAULTS = {
    "raise": "ValueError: no rate",
    "exit": "SystemExit: 3",
    "interrupt": "KeyboardInterrupt",
    "loop": "TimeoutError: no decision after 0.5 s of CPU time",
    "nothing": "TypeError: decide returns None in place of a memory and a Decision",
    "text": "TypeError: decide returns 'wait' in place of a Decision",
    "memory": "TypeError: decide returns a memory of class int for one of NoMemory; make it the "
    "class that initial_memory returns",
    "reason": "TypeError: reason must be one of Reason, got 'nothing_to_do'",
    "sentence": "TypeError: because must be a text, got 5",
    "half": "UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud800' in position 0: "
    "surrogates not allowed",
    "step": "TypeError: 'go' is no step of a Decision",
    "steps": "TypeError: steps must be a tuple, got dict_keys([])",
    "number": "TypeError: operator must be a text, got StartInstance(operator=5, host='h')",
}


def test_a_controller_that_fails_is_told_with_its_line(alone, tmp_path, monkeypatch):
    file = tmp_path / "of_one_who_fails.py"
    file.write_text(FAILING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(failures, "DECIDES_WITHIN_S", 0.5)
    own = a_spec(1, controller="of_one_who_fails:Fails")
    specs = [replace(own, controller_options={"how": how}) for how in FAULTS]
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a worker
    try:
        *failed, other = run_batch([*specs, SPECS[1]], tmp_path, processes=1)
    finally:
        signal.signal(signal.SIGINT, handler)

    assert other.summaries == alone[0][1].summaries
    for (how, fault), result in zip(FAULTS.items(), failed, strict=True):
        line = f"# line of {how}"
        before = FAILING.partition(line if line in FAILING else "# where it begins")[0]
        kept = store_of(result.spec, tmp_path).home / "traceback.txt"
        where = f"({file}:{1 + before.count(chr(10))}); traceback: {kept}"
        assert result.error == f"of_one_who_fails:Fails failed at 0 s: {fault} {where}"
        assert result.line == f"FAILED: {result.error}"
        assert f"\n{fault.split()[0]}" in kept.read_text()

        provision(result.spec, tmp_path)
        assert not kept.exists(), "of a run that goes on"


@pytest.fixture
def in_real_time(monkeypatch):
    """For this process: its children measure in virtual time, and take no longer."""
    real_time = replace(TESTBEDS["simulated"], real_time=True)
    monkeypatch.setitem(TESTBEDS, "simulated", real_time)


@pytest.mark.usefixtures("in_real_time")
def test_runs_in_real_time_are_measured_one_after_the_other(alone, tmp_path):
    """In this process, as two workers would share the testbed's CPUs, and seed by seed."""
    heard = []

    def finished(result):
        heard.append(result.spec)
        assert not multiprocessing.active_children()

    results = run_batch(SPECS, tmp_path, processes=2, report=finished)
    assert heard == sorted(SPECS, key=lambda spec: spec.seed)
    assert [result.summaries for result in results] == [result.summaries for result in alone[0]]


def test_complete_runs_are_reused(alone):
    results = run_batch(SPECS, alone[2], processes=1)
    assert [result.outcome for result in results] == ["reused"] * 3
    assert [result.summaries for result in results] == [result.summaries for result in alone[0]]
    assert digests(alone[2]) == alone[1]


def test_an_interrupted_run_goes_on(alone, tmp_path):
    run_batch(SPECS[:1], tmp_path, processes=1)
    whole = digests(tmp_path)
    forget(SPECS[0], tmp_path)
    store = begun(SPECS[0], tmp_path, 1)
    kept = store.commit(0).stat().st_mtime_ns
    assert run_batch(SPECS[:1], tmp_path)[0].outcome == "measured"
    assert digests(tmp_path) == whole
    assert store.commit(0).stat().st_mtime_ns == kept


def test_stored_under_other_inputs_is_an_error_and_not_reused(tmp_path):
    run_batch(SPECS[1:2], tmp_path, processes=1)
    run_json = store_of(SPECS[1], tmp_path).run_json
    manifest = store_of(SPECS[1], tmp_path).manifest
    run_json.write_text(run_json.read_text().replace('"vcpus":4', '"vcpus":8'))
    manifest.write_text(manifest.read_text().replace('"spec_hash": "', '"spec_hash": "other-'))
    again = run_batch(SPECS[1:2], tmp_path, processes=1)[0]
    assert again.outcome == "failed"
    assert "holds a run of the same spec with other inputs" in again.error
    assert f"(tidebench remove {tmp_path}/batch {SPECS[1].run_id})" in again.error


def test_of_a_longer_line_nothing_stays_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    progress = Progress(1)
    window = {"window": 0, "end_min": 4, "hosts": 1, "instances": 5, "waiting_items": 10**9}
    progress.window(SPECS[0], window)
    progress.finished(RunResult(spec=SPECS[0], outcome="failed", error="short"))
    shown = capsys.readouterr().out.rpartition("\x1b[K")[2]
    assert shown == f"[1/1] {SPECS[0].run_id}  FAILED: short\n"


@pytest.mark.parametrize(("terminal", "ends"), [(True, ""), (False, "\n")])
def test_that_runs_in_real_time_go_on_is_told_by_the_clock(monkeypatch, capsys, terminal, ends):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    told = []

    def heard():
        told.append(capsys.readouterr().out)
        return any(told)

    with Progress(2, ended=1).told_by_the_clock(every_s=0.01):
        wait_until(heard, "a line")
    said = "".join(told) + capsys.readouterr().out
    line = "0 min since the start, 1 of 2 runs have ended"
    assert said.replace("\r\x1b[K" if terminal else "\n", "|").strip("|").split("|")[0] == line
    assert said.endswith(line + ends)
    time.sleep(0.05)
    assert capsys.readouterr().out == "", "it has stopped"


def test_a_killed_worker_costs_time_but_no_run(alone, tmp_path):
    def kill_the_other_worker_once(_):
        if not killed:
            killed.extend(child.pid for child in multiprocessing.active_children())
            for child in multiprocessing.active_children():
                child.kill()

    killed: list[int] = []
    results = run_batch(SPECS, tmp_path, processes=2, report=kill_the_other_worker_once)
    assert killed
    # One that was complete when its worker was killed before it could say so is found complete.
    assert {result.outcome for result in results} <= {"measured", "reused"}
    assert digests(tmp_path) == alone[1]


def test_a_run_whose_process_never_survives_fails_by_itself(tmp_path):
    stop = threading.Event()

    def kill_every_worker():
        while not stop.wait(0.05):
            for child in multiprocessing.active_children():
                child.kill()

    killer = threading.Thread(target=kill_every_worker)
    killer.start()
    try:
        results = run_batch(SPECS[:2], tmp_path, processes=2)
    finally:
        stop.set()
        killer.join()
    assert [(result.outcome, result.error) for result in results] == [("failed", DIED)] * 2


ROGUES = """
import os, threading
from include.controllers.fixed import Fixed

class Ends(Fixed):
    def decide(self, memory, observation):
        os._exit(3)

class Moves(Fixed):
    def decide(self, memory, observation):
        os.chdir("/")
        return super().decide(memory, observation)

class Waits(Fixed):
    def decide(self, memory, observation):
        threading.Thread(target=threading.Event().wait, args=[60]).start()
        return super().decide(memory, observation)
"""


@pytest.fixture
def rogues(tmp_path, monkeypatch):
    (tmp_path / "rogues.py").write_text(ROGUES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("rogues")
def test_what_may_end_its_worker_again_comes_after_the_others(alone, tmp_path):
    heard = []
    specs = [a_spec(1, controller="rogues:Ends"), *SPECS]
    ended, *others = run_batch(specs, tmp_path / "var", processes=2, report=heard.append)
    assert ended.error == DIED
    assert [result.summaries for result in others] == [result.summaries for result in alone[0]]
    assert ended in heard[-2:], "with the one that was in the other worker"


@pytest.mark.usefixtures("rogues")
def test_a_controller_that_changes_the_folder_moves_no_run(tmp_path):
    moved = run_batch([a_spec(1, controller="rogues:Moves"), SPECS[0]], Path("var"), processes=1)
    for result in moved:
        assert store_of(result.spec, tmp_path / "var").manifest.is_file()


@pytest.mark.usefixtures("rogues")
@pytest.mark.parametrize("real_time", [False, True])
def test_nobody_waits_for_threads_of_a_controller(real_time, tmp_path, request):
    if real_time:
        request.getfixturevalue("in_real_time")
    specs = [a_spec(seed, controller="rogues:Waits") for seed in (1, 2)]
    begin_s = time.monotonic()
    results = run_batch(specs, tmp_path, processes=2, side_by_side=2)
    assert [result.outcome for result in results] == ["measured"] * 2
    assert time.monotonic() - begin_s < 50


@pytest.mark.usefixtures("in_real_time")
def test_a_killed_run_fails_alone_and_goes_on_when_started_again(alone, tmp_path):
    def kill_one_run():
        while not (children := multiprocessing.active_children()):
            stop.wait(0.05)
        children[0].kill()

    stop = threading.Event()
    killer = threading.Thread(target=kill_one_run)
    killer.start()
    results = run_batch(SPECS, tmp_path, side_by_side=3)
    killer.join()
    assert sorted(one.error for one in results) == ["", "", DIED]
    again = run_batch(SPECS, tmp_path, side_by_side=3)
    assert sorted(one.outcome for one in again) == ["measured", "reused", "reused"]
    assert digests(tmp_path) == alone[1]


@pytest.mark.parametrize(
    ("send", "number"),
    [(os.kill, signal.SIGINT), (os.killpg, signal.SIGTERM), (os.killpg, signal.SIGHUP)],
)
def test_an_interrupt_ends_every_run_that_is_under_way(send, number, tmp_path):
    """Runs that would take minutes give back and end; none is begun after that. A terminal that is
    closed, or a service that is stopped, signals all processes."""
    batch = subprocess.Popen(
        [sys.executable, "-c", SIDE_BY_SIDE, str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: len(list(tmp_path.rglob("run.json"))) == 2, "two runs are under way", 120)
    send(batch.pid, number)
    _, errors = batch.communicate(timeout=120)  # ends when every child has closed these
    assert batch.returncode == -number, errors
    assert len(list(tmp_path.rglob("run.json"))) == 2
    assert not list(tmp_path.rglob("*.lock"))
