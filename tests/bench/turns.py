"""The run that is measured, and the same on another checkout, in turns.

A checkout runs in a process of its own, with `include` of that checkout and this file: so nothing
but what is measured may differ, and only what both have may be imported here.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq

from include.experiment.run import Run, resolve
from include.experiment.spec import RunSpec
from include.runs import stages
from include.runs.session import Session

REPOSITORY = Path(__file__).parents[2]
BTU_MIN = 10
MEMORY, STORED = "memory", "stored"


def stepwise(minutes: float) -> RunSpec:
    """The BTU-based controller at work."""
    return RunSpec(
        experiment="bench",
        controller="btu",
        pattern="stepwise",
        btu_min=BTU_MIN,
        seed=1,
        duration_min=minutes,
    )


def in_memory(run: Run) -> int:
    """A whole run with control, monitoring and recording, without files. Returns executions."""
    session = Session.open(run)
    session.deploy()
    executions = 0
    for window in range(run.spec.windows):
        start_s = window * run.spec.window_s
        session.run(start_s, start_s + run.spec.window_s)
        tables = session.loop.testbed.take_measurements()
        executions += int(tables["queue"]["completed_items"].sum())
    return executions


def stored(spec: RunSpec, root: Path) -> int:
    """The same with Parquet files and commits, in a new folder below ``root``."""
    folder = Path(tempfile.mkdtemp(dir=root))
    stages.run_all(spec, folder)
    rows = pq.read_table(folder / "bench" / "measurements" / "queue", columns=["completed_items"])
    return int(sum(rows["completed_items"].to_pylist()))


def against(checkout: Path, minutes: float, repeats: int) -> None:
    """Print for either run how many times the CPU the other checkout takes, with the spread."""
    with ExitStack() as stack:
        sides = [stack.enter_context(_side(path, minutes)) for path in (REPOSITORY, checkout)]
        for what in (MEMORY, STORED):
            for side in sides:
                _asked(side, what)  # compile
            pairs = [_pair(sides, what, turn) for turn in range(repeats)]
            ours_s, theirs_s = (statistics.median(times_s) for times_s in zip(*pairs, strict=True))
            ratios = [theirs / ours for ours, theirs in pairs]
            print(
                f"{f'{minutes:g} min, {what}: CPU here and in {checkout}':<58} "
                f"{ours_s:8.3f} s  {theirs_s:.3f} s  {statistics.median(ratios):8.2f} x  "
                f"[{min(ratios):.2f}, {max(ratios):.2f}]"
            )


def _pair(sides: Sequence[subprocess.Popen[str]], what: str, turn: int) -> list[float]:
    """CPU seconds of one run on each, in the order of the sides; who goes first alternates."""
    order = [0, 1] if turn % 2 == 0 else [1, 0]
    took_s = {place: _asked(sides[place], what) for place in order}
    return [took_s[0], took_s[1]]


def _side(checkout: Path, minutes: float) -> subprocess.Popen[str]:
    checkout = checkout.resolve()
    return subprocess.Popen(
        [sys.executable, "-P", __file__, str(minutes)],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(checkout), f"{checkout}/plugins"])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _asked(side: subprocess.Popen[str], what: str) -> float:
    """CPU seconds of one run there."""
    assert side.stdin
    assert side.stdout
    print(what, file=side.stdin, flush=True)
    return float(side.stdout.readline())


def _serve(minutes: float) -> None:
    spec = stepwise(minutes)
    run = resolve(spec)
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            start_s = time.process_time()
            in_memory(run) if line.strip() == MEMORY else stored(spec, Path(folder))
            print(time.process_time() - start_s, flush=True)


if __name__ == "__main__":
    _serve(float(sys.argv[1]))
