"""A sweep on a Spark cluster that loses a worker half-way: nothing is lost, nothing done twice.

`python -m tests.bench.sweeps --runs 10000` starts a master and two workers on this machine, kills
one of them when a third of the runs is complete, and looks at every run at the end.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from include.files.whole import digest, read_json
from include.runs.spark.sweep import STATUS
from tests.bench.spark_cluster import HERE, Cluster, a_cluster

REPOSITORY = Path(__file__).parents[2]
NAME = "swept"
KILLED = 1


@dataclass(frozen=True, slots=True)
class Swept:
    """What became of a sweep: what it said, its statuses by run, and how long it took."""

    said: str
    statuses: list[dict[str, str]]
    complete_at_the_kill: int
    took_s: float


def a_spec(runs: int, minutes: float, controllers: Sequence[str]) -> dict[str, object]:
    """So many short runs of two controllers."""
    return {
        "name": NAME,
        "controllers": list(controllers),
        "patterns": "random_walk_1",
        "btus_min": minutes,
        "duration_min": minutes,
        "seeds": f"1-{runs // 2}",
        "summaries_only": True,
    }


def sweep_and_kill(cluster: Cluster, runs: int, values: Mapping[str, object], root: Path) -> Swept:
    """Sweep, and kill a worker when a third of the runs is complete."""
    spec = cluster.folder / f"{NAME}.yaml"
    spec.write_text(json.dumps(values), encoding="utf-8")
    log, begun_s = cluster.folder / "driver.log", time.monotonic()
    call = ["-m", "include.cli", "run", str(spec), "--root", str(root)]
    with log.open("wb") as sink:
        driver = subprocess.Popen(
            [sys.executable, *call, "--on", cluster.master],
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY), "SPARK_LOCAL_IP": HERE},
        )
    try:
        while (complete := _complete(root)) < runs // 3:
            assert driver.poll() is None, log.read_text()
            time.sleep(0.5)
        cluster.kill(KILLED)
        code = driver.wait()
    finally:
        driver.kill()
        driver.wait()
    assert code == 0, log.read_text()
    with (root / NAME / STATUS).open(encoding="utf-8") as file:
        statuses = list(csv.DictReader(file))
    return Swept(log.read_text(), statuses, complete, time.monotonic() - begun_s)


def _complete(root: Path) -> int:
    return sum(1 for _ in (root / NAME / "runs").glob("*/manifest.json"))


def problems(swept: Swept, runs: int, root: Path) -> list[str]:
    """Runs that are missing, that were told of more than once, or whose rows are not theirs."""
    counts = Counter(row["run"] for row in swept.statuses)
    reported = [f"{run} has {times} statuses" for run, times in counts.items() if times > 1]
    reported += [f"{row['run']}: {row['error']}" for row in swept.statuses if row["error"]]
    if len(counts) != runs:
        reported.append(f"{len(counts)} of {runs} runs have a status")
    for run in counts:
        manifest = root / NAME / "runs" / run / "manifest.json"
        if not manifest.is_file():
            reported.append(f"{run} is not complete")
            continue
        for part in read_json(manifest)["parts"]:
            rows = root / NAME / part["path"]
            if not rows.is_file() or digest(rows) != part["sha256"]:
                reported.append(f"{part['path']} is not what {run} has measured")
            elif [rows.name] != [file.name for file in rows.parent.iterdir()]:
                reported.append(f"{rows.parent} has more than one file")
    return reported


def main(arguments: Sequence[str]) -> int:
    """Sweep once; 1 when something was lost or is there twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.sweeps", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="an even number")
    parser.add_argument("--minutes", type=float, default=10, help="of every run")
    parser.add_argument("--controllers", nargs=2, default=["btu", "threshold"], metavar="NAME")
    parser.add_argument("--folder", type=Path, help="where everything stays; else nothing does")
    options = parser.parse_args(arguments)
    values = a_spec(options.runs, options.minutes, options.controllers)
    with tempfile.TemporaryDirectory(prefix="tidebench-sweeps-") as passing:
        folder = options.folder or Path(passing)
        root = folder / "data"
        with a_cluster(folder, workers=2) as cluster:
            swept = sweep_and_kill(cluster, options.runs, values, root)
        reported = problems(swept, options.runs, root)
    outcomes = Counter(row["outcome"] for row in swept.statuses)
    if reported:
        print("\n".join(reported))
    else:
        runs_per_min = 60 * options.runs / swept.took_s
        print(
            f"{options.runs} runs of {options.minutes:g} min, one of two workers killed after "
            f"{swept.complete_at_the_kill}: {dict(outcomes)}, {runs_per_min:.0f} runs per minute, "
            "all of them whole"
        )
    return int(bool(reported))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
