"""How time and memory grow with the length of a run: four times as many hours, four times the CPU.

`python -m tests.bench.growth --hours 24 --repeats 5 --gate` ends with 1 when they grow faster.
Seconds are of the CPU and without the start of the process, so they can be compared on a machine
that is busy with other work. Other work makes them more all the same, so the two lengths run in
turns, and the gate looks at the medians of the ratios of a turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from include.experiment.spec import RunSpec
from include.runs import stages

TIMES = 4
CPU_AT_MOST, PEAK_AT_MOST = 4.4, 1.2
"""Of a run that is ``TIMES`` as long, relative to the other one; medians of several turns.

On two cores at a load of 2 to 7, single turns took 3.8 to 4.4 times the CPU, five of them 3.9 to
4.2 in the middle.

Windows cost the same memory however many there are. At the end of the last one every table holds a
row group, which the small tables of a short run do not fill.
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds, and the peak of the process in MB."""

    cpu_s: float
    peak_mb: float


def a_run(hours: float, *, summaries_only: bool = False) -> RunSpec:
    """Four machines that publish all the time, the BTU-based controller, a BTU of ten minutes."""
    return RunSpec(
        experiment="growth",
        controller="btu",
        pattern="constant",
        pattern_options={"level": 4},
        btu_min=10,
        seed=1,
        duration_min=60 * hours,
        summaries_only=summaries_only,
    )


def cost_here(spec: RunSpec, root: Path) -> Cost:
    """Of a run in this process, which has not run anything else."""
    stages.run_all(a_run(1 / 6), root / "compile")
    start_s = time.process_time()
    stages.run_all(spec, root)
    return Cost(time.process_time() - start_s, memory_mb("VmHWM"))


def memory_mb(field: str) -> float:
    """A field of /proc/self/status: ``VmRSS`` now, ``VmHWM`` at its peak.

    Not from getrusage: after a fork that still counts the memory of the process before.
    """
    with Path("/proc/self/status").open(encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def cost(hours: float, *options: str) -> Cost:
    """Of a run in a process of its own."""
    call = [sys.executable, "-m", "tests.bench.growth", "--hours", str(hours), "--here", *options]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    return Cost(*json.loads(done.stdout))


def shown(hours: float, costs: Sequence[Cost]) -> str:
    """Several runs of a length, as one line: their medians, and how far the CPU is apart."""
    cpu_s, peak_mb = ([getattr(cost, name) for cost in costs] for name in ("cpu_s", "peak_mb"))
    return (
        f"{hours:6g} hours {statistics.median(cpu_s):8.2f} s of CPU  "
        f"[{min(cpu_s):.2f}, {max(cpu_s):.2f}]  {statistics.median(peak_mb):6.0f} MB at its peak"
    )


def ratios(turns: Sequence[tuple[Cost, Cost]]) -> tuple[float, float]:
    """Of CPU and memory, the longer run to the shorter: medians over the turns."""
    return (
        statistics.median(long.cpu_s / short.cpu_s for short, long in turns),
        statistics.median(long.peak_mb / short.peak_mb for short, long in turns),
    )


def problems(cpu_ratio: float, peak_ratio: float) -> Iterator[str]:
    """What grows faster than the run is long."""
    if cpu_ratio > CPU_AT_MOST:
        yield f"{TIMES} times the hours: {cpu_ratio:.2f} times the CPU, above {CPU_AT_MOST}"
    if peak_ratio > PEAK_AT_MOST:
        yield f"{TIMES} times the hours: {peak_ratio:.2f} times the memory, above {PEAK_AT_MOST}"


def main(arguments: Sequence[str]) -> int:
    """Both lengths, one line each, and their ratios."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument("--hours", type=float, default=24, help=f"of the one, {TIMES} times later")
    parser.add_argument("--repeats", type=int, default=5, help="turns, a run of each in every one")
    parser.add_argument("--gate", action="store_true", help="end with 1 when growth is too fast")
    parser.add_argument("--here", action="store_true", help="one run in this process, as JSON")
    kept = "--summaries-only"
    parser.add_argument(kept, action="store_true", help="samples and utilisations are not stored")
    options = parser.parse_args(arguments)
    if options.here:
        spec = a_run(options.hours, summaries_only=options.summaries_only)
        with tempfile.TemporaryDirectory() as folder:
            spent = cost_here(spec, Path(folder))
        print(json.dumps([spent.cpu_s, spent.peak_mb]))
        return 0
    lengths = (options.hours, TIMES * options.hours)
    how = [kept] if options.summaries_only else []
    turns = [(cost(lengths[0], *how), cost(lengths[1], *how)) for _ in range(options.repeats)]
    for hours, costs in zip(lengths, zip(*turns, strict=True), strict=True):
        print(shown(hours, costs))
    of_cpu, of_memory = ratios(turns)
    print(f"{'ratio':<12} {of_cpu:8.2f} of CPU {of_memory:20.2f} of memory")
    reported = list(problems(of_cpu, of_memory)) if options.gate else []
    print(*reported, sep="\n", end="\n" if reported else "", file=sys.stderr)
    return 1 if reported else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
