"""`make bench`: medians of several runs, and ratios against a named alternative.

`python -m tests.bench --minutes 20 --repeats 1` prints the same lines sooner, of shorter runs.
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
from tests.bench.heap_network import HeapNetwork
from tests.bench.kernel_network import KernelNetwork
from tests.bench.simpy_network import SimpyNetwork
from tests.bench.turns import BTU_MIN, against, in_memory, stepwise, stored
from tests.builders import run_spec

DEMO = Path(__file__).parents[2] / "include" / "experiment" / "specs" / "demo.yaml"
Peer = KernelNetwork | HeapNetwork | SimpyNetwork
PEERS: tuple[tuple[str, type[Peer], int], ...] = (
    ("A heap of events in plain Python", HeapNetwork, 2),
    ("SimPy", SimpyNetwork, 2),
)
"""Names, and of how many repetitions of ours each gets one."""
TIMES_THE_HEAP_AT_LEAST = 15
"""Executions per CPU second of the kernel, relative to those of the loop over a heap."""


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


def peer_run(minutes: float) -> tuple[Run, Callable[[type[Peer]], int]]:
    """A run under ``fixed``, where nothing scales, and what executes the same without control."""
    spec = run_spec(experiment="bench", controller="fixed", btu_min=minutes, duration_min=minutes)
    run = resolve(spec)
    calibration = VirtualCalibration.model_validate(run.calibration)

    def execute(peer: type[Peer]) -> int:
        network = peer(run.topology, calibration, seed=1)
        return network.run(run.levels_of, dict(run.instances_at_peak), spec.duration_s)

    return run, execute


def against_peers(minutes: float, repeats: int) -> None:
    """The same network with the same servers."""
    run, execute = peer_run(minutes)
    name = f"Tidebench, {minutes:g} min stepwise, fixed servers"
    ours = row(name, *timed(lambda: in_memory(run), repeats))
    for name, peer, share in PEERS:
        took = timed(partial(execute, peer), -(-repeats // share))
        rate = row(f"{name}, the same network", *took)
        print(f"{'ratio':<58} {ours / rate:8.1f} x")


def gate(minutes: float, repeats: int) -> int:
    """Kernel and heap loop in turns, by CPU time; 1 when the kernel is not so many times as fast.

    What this machine does besides costs both about as much, so the ratio is that of the code.
    """
    _, execute = peer_run(minutes)
    execute(KernelNetwork)  # compile
    ratios = []
    for _ in range(repeats):
        rates = []
        for peer in (KernelNetwork, HeapNetwork):
            start_s = time.process_time()
            executions = execute(peer)
            rates.append(executions / (time.process_time() - start_s))
        ratios.append(rates[0] / rates[1])
    ratio = statistics.median(ratios)
    print(
        f"{f'Kernel to heap loop, {minutes:g} min, CPU, in turns':<58} {ratio:8.1f} x  "
        f"[{min(ratios):.1f}, {max(ratios):.1f}]"
    )
    return len(too_slow(ratio))


def too_slow(ratio: float) -> list[str]:
    """What the gate says; nothing when the kernel is fast enough."""
    if ratio >= TIMES_THE_HEAP_AT_LEAST:
        return []
    problem = (
        f"the kernel is {ratio:.1f} times as fast as a heap loop, not {TIMES_THE_HEAP_AT_LEAST}"
    )
    print(problem, file=sys.stderr)
    return [problem]


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


def command_line(minutes: float, repeats: int, root: Path) -> None:
    """`python -m include.cli run` as a whole process, and its peak memory."""
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
    # Not from getrusage: after a fork that still counts the memory of this process.
    call = [sys.executable, "-c", PEAK, *arguments]
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    print(f"{'its peak memory':<58} {int(done.stderr.split()[-1]) / 1024:8.0f} MB")


def main(arguments: Sequence[str]) -> int:
    """Everything, one line each; or only what an option asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120, help="of each run; peers a quarter")
    parser.add_argument("--repeats", type=int, default=7, help="of each; peers half as many")
    parser.add_argument("--gate", action="store_true", help="end with 1 if the kernel is too slow")
    parser.add_argument("--against", type=Path, help="run the same on this checkout, in turns")
    options = parser.parse_args(arguments)
    minutes, repeats = options.minutes, options.repeats
    if options.gate:
        return gate(minutes / 4, repeats)
    if options.against:
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
        against_peers(minutes / 4, repeats)
        command_line(minutes, repeats, root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
