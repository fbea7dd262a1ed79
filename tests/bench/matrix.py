"""How long the runs of a matrix take, and Spark for their tables.

`python -m tests.bench.matrix --runs 100` measures so many runs of two hours in two processes, with
summaries only, and then builds their tables in a process of its own. Times are of the clock, from
the start of a process to its end; sampled items are those that the tables are about, of which Spark
reads counts. Before and after the runs a loop over a heap of events executes half an hour of the
same load: with `--gate` it ends with 1 when a run takes too much of that CPU.
`--minutes 5 --runs 2` is shorter.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from include.experiment.spec import RunSpec
from include.results.tables import job
from include.results.tables.measured import complete_runs, rows_read
from include.results.tables.staged import read_staged
from include.runs.batch import require_complete, run_batch
from tests.bench.__main__ import peer_run, timed
from tests.bench.gates import exit_code
from tests.bench.heap_network import HeapNetwork

EXPERIMENT = "many"
PROCESSES = 2
OF_THE_HEAP_AT_MOST = 0.7
"""CPU of a two-hour run, relative to half an hour of the heap loop.

At loads of 1 to 12 it took 0.36 to 0.53 in matrices of 80 and 100 runs. The start of the processes
counts, so fewer runs take more: 0.45 to 0.60 in matrices of 40.
"""


def measured(root: Path, runs: int, minutes: float) -> tuple[float, float]:
    """Seconds that so many runs of two controllers take, of the clock and of the CPU."""
    specs = [
        RunSpec(
            experiment=EXPERIMENT,
            controller=("btu", "threshold")[number % 2],
            pattern="stepwise",
            btu_min=min(10, minutes),
            seed=1 + number // 2,
            duration_min=minutes,
            summaries_only=True,
        )
        for number in range(runs)
    ]
    before = os.times()
    require_complete(run_batch(specs, root, processes=PROCESSES))
    after = os.times()
    return after.elapsed - before.elapsed, sum(after[:4]) - sum(before[:4])


def main(arguments: Sequence[str]) -> int:
    """One row of the runs, one of their CPU beside the heap loop's, one of their tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.matrix", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=120, help="of each run")
    parser.add_argument("--gate", action="store_true", help="end with 1 when runs are too slow")
    options = parser.parse_args(arguments)
    runs, minutes = options.runs, options.minutes
    _, execute = peer_run(minutes / 4)
    heap_loop = partial(timed, partial(execute, HeapNetwork), 2)
    with tempfile.TemporaryDirectory() as root:
        heap_s, _ = heap_loop()
        took_s, used_s = measured(Path(root), runs, minutes)
        heap_s += heap_loop()[0]
        of_the_heap = used_s / runs / statistics.median(heap_s)
        print(
            f"{runs} runs {took_s:8.1f} s {60 * runs / took_s:8.0f} runs/min "
            f"{1000 * used_s / runs:8.0f} ms of CPU each, {of_the_heap:.2f} of the heap loop's"
        )
        folder = Path(root) / EXPERIMENT
        rows = rows_read(folder, complete_runs(folder))
        begun_s = time.monotonic()
        call = [sys.executable, str(job.__file__), "--folder", str(folder)]
        subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
        took_s = time.monotonic() - begun_s
        sampled = sum(
            row["sampled_items"] for row in read_staged(folder, "compliance")
            if row["scope"] == "overall"
        )  # fmt: skip
    pace = f"{rows / took_s:10,.0f} rows/s {sampled / took_s:12,.0f} sampled items/s"
    print(f"tables of {runs} runs {rows:12,} rows {took_s:8.1f} s {pace}")
    name = "CPU of a run of a matrix beside a quarter of it in a heap loop"
    return exit_code([(name, of_the_heap, OF_THE_HEAP_AT_MOST)], gate=options.gate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
