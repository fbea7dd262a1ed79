"""How long Spark takes for the tables of many runs.

`python -m tests.bench.tables --runs 100` measures so many runs of two hours first, with summaries
only, and then builds their tables in a process of its own. Seconds are of the clock, from its start
to its end; sampled items are those that the tables are about, of which Spark reads counts.
`--minutes 5 --runs 2` is shorter.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from include.experiment.spec import RunSpec
from include.results.tables import job
from include.results.tables.measured import complete_runs, rows_read
from include.results.tables.staged import read_staged
from include.runs.batch import require_complete, run_batch

EXPERIMENT = "many"


def measured(root: Path, runs: int, minutes: float) -> Path:
    """The folder of an experiment of so many runs of two controllers."""
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
    require_complete(run_batch(specs, root))
    return root / EXPERIMENT


def main(arguments: Sequence[str]) -> int:
    """One row: runs, rows that queries read, seconds, and what that is in a second."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tables", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=120)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as root:
        folder = measured(Path(root), options.runs, options.minutes)
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
    print(f"tables of {options.runs} runs {rows:12,} rows {took_s:8.1f} s {pace}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
