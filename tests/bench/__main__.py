"""`make bench`: medians of several runs, and ratios against a named alternative.

`python -m tests.bench --minutes 20 --repeats 1` prints the same lines sooner, of shorter runs. With
`--gate` it ends with 1 when the kernel is too slow beside the heap loop, or the whole process takes
too much memory.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import yaml

from include.experiment.run import Run, resolve
from include.testbeds.virtual.calibration import VirtualCalibration
from tests.bench.gates import exit_code
from tests.bench.heap_network import HeapNetwork
from tests.bench.kernel_network import KernelNetwork
from tests.bench.simpy_network import SimpyNetwork
from tests.bench.turns import BTU_MIN, against, in_memory, stepwise, stored
from tests.builders import run_spec

DEMO = Path(__file__).parents[2] / "include" / "experiment" / "specs" / "demo.yaml"
STAGES = "include/runs/stages.py"
"""Of a checkout without it, such as 0.2.0, Python would take that of this one, without a word."""
Peer = KernelNetwork | HeapNetwork | SimpyNetwork
TIMES_THE_HEAP_AT_LEAST = 15
"""Executions per CPU second of the kernel, relative to those of the loop over a heap."""
PEAK_MB_AT_MOST = 220
"""Of `tidebench run demo`, a process that finds the kernel compiled: 197 MB."""


def timed(
    work: Callable[[], int], repeats: int, clock: Callable[[], float] = time.process_time
) -> tuple[list[float], int]:
    """Seconds of every repetition, of the CPU unless told otherwise, and what the work counted."""
    took_s, counted = [], 0
    for _ in range(repeats):
        start_s = clock()
        counted = work()
        took_s.append(clock() - start_s)
    return took_s, counted


def row(name: str, took_s: list[float], counted: int = 0) -> float:
    """Print one line; returns the median rate or time."""
    middle_s = statistics.median(took_s)
    rate = f"{counted / middle_s / 1e6:8.2f} M executions/s" if counted else ""
    print(f"{name:<58} {middle_s:8.3f} s  [{min(took_s):.3f}, {max(took_s):.3f}]  {rate}")
    return counted / middle_s if counted else middle_s


def print_ratio(name: str, ratios: Sequence[float]) -> float:
    """Print one line; returns the median ratio."""
    middle = statistics.median(ratios)
    print(f"{name:<58} {middle:8.1f} x  [{min(ratios):.1f}, {max(ratios):.1f}]")
    return middle


def peer_run(minutes: float) -> tuple[Run, Callable[[type[Peer]], int]]:
    """A run under ``fixed``, where nothing scales, and what executes the same without control."""
    spec = run_spec(experiment="bench", controller="fixed", btu_min=minutes, duration_min=minutes)
    run = resolve(spec)
    calibration = VirtualCalibration.model_validate(run.calibration)

    def execute(peer: type[Peer]) -> int:
        network = peer(run.topology, calibration, seed=1)
        return network.run(run.levels_of, dict(run.instances_at_peak), spec.duration_s)

    return run, execute


def against_peers(minutes: float, repeats: int) -> float:
    """The same network with the same servers. Returns how far the kernel is ahead of the heap loop.

    These two run in turns: what the machine does besides costs both about as much, so the ratio is
    that of the code.
    """
    run, execute = peer_run(minutes)
    name = f"Tidebench, {minutes:g} min stepwise, fixed servers"
    ours = row(name, *timed(lambda: in_memory(run), repeats))
    executions = execute(KernelNetwork)
    turns = [
        [timed(partial(execute, peer), 1)[0][0] for peer in (KernelNetwork, HeapNetwork)]
        for _ in range(repeats)
    ]
    kernel_s, heap_s = map(list, zip(*turns, strict=True))
    row("kernel and draws of the same, alone", kernel_s, executions)
    heap = row("a heap of events in plain Python, the same network", heap_s, executions)
    print_ratio("Tidebench to the heap loop", [ours / heap])
    took = timed(partial(execute, SimpyNetwork), -(-repeats // 2))
    print_ratio("Tidebench to SimPy", [ours / row("SimPy, the same network", *took)])
    ratios = [heap / kernel for kernel, heap in turns]
    return print_ratio("kernel to the heap loop, in turns", ratios)


PEAK = """
import runpy, sys
from tests.bench.growth import memory_mb
sys.argv = ["include.cli", *sys.argv[1:]]
try:
    runpy.run_module("include.cli", run_name="__main__")
finally:
    print(memory_mb("VmHWM"), file=sys.stderr)
"""


def command_line(minutes: float, repeats: int, root: Path) -> float:
    """`python -m include.cli run` as a whole process; returns its peak memory in MB."""
    spec = root / "demo.yaml"
    spec.write_text(yaml.safe_dump(yaml.safe_load(DEMO.read_text()) | {"duration_min": minutes}))
    arguments = ["run", "--fresh", "--root", str(root), str(spec)]

    def run() -> int:
        call = [sys.executable, "-m", "include.cli", *arguments]
        subprocess.run(call, check=True, capture_output=True)
        return 0

    run()
    name = f"python -m include.cli run, {minutes:g} min, whole process"
    row(name, timed(run, repeats, time.perf_counter)[0])
    call = [sys.executable, "-c", PEAK, *arguments]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    peak_mb = float(done.stderr.split()[-1])
    print(f"{'its peak memory':<58} {peak_mb:8.0f} MB")
    return peak_mb


def main(arguments: Sequence[str]) -> int:
    """Everything, one line each; or another checkout beside this one."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120, help="of each run; peers a quarter")
    parser.add_argument("--repeats", type=int, default=7, help="of each; SimPy half as many")
    parser.add_argument("--gate", action="store_true", help="end with 1 if too slow or too large")
    parser.add_argument("--against", type=Path, help="run the same on this checkout, in turns")
    options = parser.parse_args(arguments)
    minutes, repeats = options.minutes, options.repeats
    if options.against:
        if not (options.against / STAGES).is_file():
            parser.error(f"--against: {options.against} has no {STAGES}, which this bench runs")
        against(options.against, minutes, repeats)
        return 0
    spec = stepwise(minutes)
    run = resolve(spec)
    in_memory(run)  # compile
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        name = f"stepwise, btu, BTU {BTU_MIN}, {minutes:g} min, in memory"
        rate = row(name, *timed(lambda: in_memory(run), repeats))
        rate /= row("the same, stored", *timed(lambda: stored(spec, root), repeats))
        print(f"{'times the CPU that the run stored takes':<58} {rate:8.2f} x")
        kernel_to_heap = against_peers(minutes / 4, repeats)
        peak_mb = command_line(minutes, repeats, root)
    figures = [
        ("heap loop to the kernel", 1 / kernel_to_heap, 1 / TIMES_THE_HEAP_AT_LEAST),
        ("MB of a run of the command line", peak_mb, PEAK_MB_AT_MOST),
    ]
    return exit_code(figures, gate=options.gate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
