"""`make bench`: medians of several runs, and ratios against a named alternative."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from include.control import stages
from include.control.session import Session
from include.experiment.run import Run, resolve
from include.experiment.spec import RunSpec
from include.testbeds.virtual.calibration import VirtualCalibration
from tests.bench.simpy_network import SimpyNetwork

REPEATS = 7
SIMPY_REPEATS, SIMPY_MINUTES = 3, 30
STEPWISE = RunSpec(
    experiment="bench", controller="btu", pattern="stepwise", btu_min=10, seed=1, duration_min=120
)


def timed(work: Callable[[], int], repeats: int) -> tuple[list[float], int]:
    """Seconds of every repetition, and what the work counted."""
    took_s, counted = [], 0
    for _ in range(repeats):
        start_s = time.perf_counter()
        counted = work()
        took_s.append(time.perf_counter() - start_s)
    return took_s, counted


def row(name: str, took_s: list[float], counted: int = 0) -> float:
    """Print one line; returns the median rate or time."""
    middle_s = statistics.median(took_s)
    rate = f"{counted / middle_s / 1e6:8.2f} M executions/s" if counted else ""
    print(f"{name:<58} {middle_s:8.3f} s  [{min(took_s):.3f}, {max(took_s):.3f}]  {rate}")
    return counted / middle_s if counted else middle_s


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


def stored(root: Path) -> int:
    """The same with snapshots, Parquet and commits."""
    stages.forget(STEPWISE, root)
    stages.run_all(STEPWISE, root)
    rows = pq.read_table(root / "bench" / "measurements" / "queue", columns=["completed_items"])
    return int(sum(rows["completed_items"].to_pylist()))


def against_simpy() -> None:
    """The same network with the servers of the ``fixed`` controller, half an hour of stepwise."""
    spec = RunSpec(
        experiment="bench",
        controller="fixed",
        pattern="stepwise",
        btu_min=SIMPY_MINUTES,
        seed=1,
        duration_min=SIMPY_MINUTES,
    )
    run = resolve(spec)
    calibration = VirtualCalibration.model_validate(run.calibration)
    servers = dict(run.instances_at_peak)

    def simpy_run() -> int:
        network = SimpyNetwork(run.topology, calibration, seed=1)
        return network.run(run.levels, servers, spec.duration_s)

    ours = row(
        f"Tidebench, {SIMPY_MINUTES} min stepwise, fixed servers",
        *timed(lambda: in_memory(run), REPEATS),
    )
    theirs = row("SimPy, the same network", *timed(simpy_run, SIMPY_REPEATS))
    print(f"{'ratio':<58} {ours / theirs:8.1f} x")


PEAK = """
import runpy, sys
sys.argv = ["include.cli", *sys.argv[1:]]
try:
    runpy.run_module("include.cli", run_name="__main__")
finally:
    with open("/proc/self/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM"))
    print(peak.split()[1], file=sys.stderr)
"""


def command_line(root: Path) -> None:
    """`python -m include.cli run` as a whole process, and its peak memory."""
    spec = Path(__file__).parents[2] / "include" / "experiment" / "specs" / "demo.yaml"
    arguments = ["run", "--fresh", "--root", str(root), str(spec)]

    def run() -> int:
        call = [sys.executable, "-m", "include.cli", *arguments]
        subprocess.run(call, check=True, capture_output=True)
        return 0

    run()
    row("python -m include.cli run, 120 min, whole process", timed(run, REPEATS)[0])
    # Not from getrusage: after a fork that still counts the memory of this process.
    call = [sys.executable, "-c", PEAK, *arguments]
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    print(f"{'its peak memory':<58} {int(done.stderr.split()[-1]) / 1024:8.0f} MB")


def main() -> None:
    """Everything, one line each."""
    run = resolve(STEPWISE)
    in_memory(run)  # compile
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        row("stepwise, btu, BTU 10, 120 min, in memory", *timed(lambda: in_memory(run), REPEATS))
        row("the same, stored", *timed(lambda: stored(root), REPEATS))
        against_simpy()
        command_line(root)


if __name__ == "__main__":
    main()
