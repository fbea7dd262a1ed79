"""A sweep on a Spark cluster: workers get all code from the driver, and one of them is killed.

Also the code of a controller whose folder no worker knows.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from include.experiment.matrix import runs_in_file
from include.runs import stages
from include.runs.spark.sweep import STATUS
from include.runs.stored import ASKED
from tests.bench.sweeps import NAME, Swept, main, problems
from tests.digests import digests
from tests.e2e.own_controller import OWN, write_own

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

RUNS = 36


def test_nothing_is_lost_and_nothing_twice_when_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = write_own(tmp_path / "home").parent
    monkeypatch.chdir(home)
    monkeypatch.syspath_prepend(str(home))
    call = ["--runs", str(RUNS), "--folder", str(tmp_path), "--controllers", OWN, "btu"]
    code, said = main(call), capsys.readouterr().out
    assert code == 0, said
    killed = re.match(rf"{RUNS} runs of 10 min, one of two workers killed after (\d+): ", said)
    assert killed, said
    assert int(killed[1]) < RUNS
    assert said.endswith("all of them whole\n")
    unpacked = "app-*/*/tidebench"
    assert list((tmp_path / "worker-0").glob(f"{unpacked}/my_package/module.py"))
    # Compiled functions are kept beside the source that a worker has read.
    compiled = "include/testbeds/simulated/__pycache__/kernel.advance-*.nbi"
    assert list((tmp_path / "worker-0").glob(f"{unpacked}/{compiled}"))
    root, alone = tmp_path / "data", tmp_path / "alone"
    for point in runs_in_file(tmp_path / f"{NAME}.yaml")[:: RUNS // 2]:
        stages.run_all(point, alone)
    expected, swept = (digests(where, STATUS, ASKED) for where in (alone, root))
    assert {path: swept[path] for path in expected} == expected


def test_what_is_lost_or_there_twice_is_named(tmp_path: Path) -> None:
    rows = [{"run": "a", "error": ""}, {"run": "a", "error": ""}, {"run": "b", "error": "no"}]
    reported = problems(Swept("", rows, 0, 1.0), 3, tmp_path)
    assert reported == [
        "a has 2 statuses",
        "b: no",
        "2 of 3 runs have a status",
        "a is not complete",
        "b is not complete",
    ]
