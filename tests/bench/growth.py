"""How time and memory grow with the length of a run: four days take four times the CPU of one, and
two weeks little more memory.

`python -m tests.bench.growth --hours 24 --repeats 5 --gate` ends with 1 when they grow faster.
Seconds are of the CPU and without the start of the process, so they can be compared on a machine
that is busy with other work. Other work makes them more all the same, so one day and four run in
turns, and the gate looks at the median of the ratios of a turn. Memory does not depend on other
work: a day and two weeks run once with samples and once with `--summaries-only`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from include.experiment.spec import RunSpec
from include.runs import stages
from tests.bench.gates import exit_code

TIMES, TIMES_FOR_MEMORY = 4, 14
CPU_AT_MOST, PEAK_AT_MOST = 4.4, 1.2
"""Of a run that is so many times as long, relative to the other one.

On two cores at a load of 2 to 7, single turns took 3.8 to 4.4 times the CPU, five of them 3.9 to
4.2 in the middle.

Windows cost the same memory however many there are. At the end of the last one every table holds a
row group, which the small tables of a short run do not fill.
"""
SUMMARIES_ONLY = "--summaries-only"


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


def cpu_ratio(turns: Sequence[tuple[Cost, Cost]]) -> float:
    """The longer run to the shorter, the median over the turns."""
    return statistics.median(long.cpu_s / short.cpu_s for short, long in turns)


def peak_ratio(hours: float, *options: str) -> float:
    """Measure and print both lengths; how many times the memory the longer run takes."""
    lengths = hours, TIMES_FOR_MEMORY * hours
    short, long = (cost(length, *options) for length in lengths)
    print(*options, shown(lengths[0], [short]), shown(lengths[1], [long]), sep="\n")
    print(f"{'ratio':<12} {long.peak_mb / short.peak_mb:8.2f} of memory")
    return long.peak_mb / short.peak_mb


def main(arguments: Sequence[str]) -> int:
    """Every length, one line each, and their ratios."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument(
        "--hours", type=float, default=24,
        help=f"of the shortest; others {TIMES} (CPU) and {TIMES_FOR_MEMORY} times (memory)",
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, default=5, help="turns for CPU, of both lengths")
    parser.add_argument("--gate", action="store_true", help="end with 1 when growth is too fast")
    parser.add_argument("--here", action="store_true", help="one run in this process, as JSON")
    parser.add_argument(SUMMARIES_ONLY, action="store_true", help="of --here: no samples stored")
    options = parser.parse_args(arguments)
    hours = options.hours
    if options.here:
        spec = a_run(hours, summaries_only=options.summaries_only)
        with tempfile.TemporaryDirectory() as folder:
            spent = cost_here(spec, Path(folder))
        print(json.dumps([spent.cpu_s, spent.peak_mb]))
        return 0
    turns = [(cost(hours), cost(TIMES * hours)) for _ in range(options.repeats)]
    for length, costs in zip((hours, TIMES * hours), zip(*turns, strict=True), strict=True):
        print(shown(length, costs))
    of_cpu = cpu_ratio(turns)
    print(f"{'ratio':<12} {of_cpu:8.2f} of CPU")
    figures = [(f"CPU of {TIMES} times the hours", of_cpu, CPU_AT_MOST)]
    for only in ((), (SUMMARIES_ONLY,)):
        name = f"memory of {TIMES_FOR_MEMORY} times the hours"
        figures.append((name, peak_ratio(hours, *only), PEAK_AT_MOST))
    return exit_code(figures, gate=options.gate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
