"""How time and memory grow with the length of a run: four times as many hours, four times the CPU.

`python -m tests.bench.growth --hours 24 --repeats 3 --gate` ends with 1 when they grow faster.
Seconds are of the CPU and without the start of the process, so they can be compared on a machine
that is busy with other work; the gate looks at ratios only.
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
CPU_AT_MOST, PEAK_AT_MOST = 4.1, 1.2
"""Of a run that is ``TIMES`` as long, relative to the other one."""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds, the peak of the process in MB, bytes of the first and the last snapshot."""

    cpu_s: float
    peak_mb: float
    snapshots: tuple[int, int]


def a_run(hours: float) -> RunSpec:
    """Four machines that publish all the time, the BTU-based controller, a BTU of ten minutes."""
    return RunSpec(
        experiment="growth",
        controller="btu",
        pattern="constant",
        pattern_options={"level": 4},
        btu_min=10,
        seed=1,
        duration_min=60 * hours,
    )


def cost_here(hours: float, root: Path) -> Cost:
    """Of a run in this process, which has not run anything else."""
    stages.run_all(a_run(1 / 6), root / "compile")
    spec, start_s = a_run(hours), time.process_time()
    stages.run_all(spec, root)
    cpu_s = time.process_time() - start_s
    store = stages.store_of(spec, root)
    ends = [store.snapshot(window).stat().st_size for window in (1, spec.windows)]
    # Not from getrusage: after a fork that still counts the memory of the process before.
    with Path("/proc/self/status").open(encoding="ascii") as status:
        peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return Cost(cpu_s, peak_kb / 1024, (ends[0], ends[1]))


def cost(hours: float) -> Cost:
    """Of a run in a process of its own."""
    call = [sys.executable, "-m", "tests.bench.growth", "--hours", str(hours), "--here"]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    values = json.loads(done.stdout)
    return Cost(values[0], values[1], (values[2], values[3]))


def measured(hours: float, repeats: int) -> Cost:
    """Print one line of several runs; their medians."""
    costs = [cost(hours) for _ in range(repeats)]
    cpu_s, peak_mb = ([getattr(one, name) for one in costs] for name in ("cpu_s", "peak_mb"))
    middle = Cost(statistics.median(cpu_s), statistics.median(peak_mb), costs[0].snapshots)
    first, last = middle.snapshots
    print(
        f"{hours:6g} hours {middle.cpu_s:8.2f} s of CPU  [{min(cpu_s):.2f}, {max(cpu_s):.2f}]  "
        f"{middle.peak_mb:6.0f} MB at its peak  snapshots {first:,} to {last:,} bytes",
        flush=True,
    )
    return middle


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
    parser.add_argument("--repeats", type=int, default=3, help="of each")
    parser.add_argument("--gate", action="store_true", help="end with 1 when growth is too fast")
    parser.add_argument("--here", action="store_true", help="one run in this process, as JSON")
    given = parser.parse_args(arguments)
    if given.here:
        with tempfile.TemporaryDirectory() as folder:
            one = cost_here(given.hours, Path(folder))
        print(json.dumps([one.cpu_s, one.peak_mb, *one.snapshots]))
        return 0
    short, long = (measured(hours, given.repeats) for hours in (given.hours, TIMES * given.hours))
    ratios = long.cpu_s / short.cpu_s, long.peak_mb / short.peak_mb
    print(f"{'ratio':<12} {ratios[0]:8.2f} of CPU {ratios[1]:20.2f} of memory")
    found = list(problems(*ratios)) if given.gate else []
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
