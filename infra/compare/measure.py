"""Measure specs with the code of one checkout: a process of its own, which `checkouts.py` starts.

Only ``include`` of that checkout is imported: the one on PYTHONPATH.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from include.experiment.spec import RunSpec, load_spec
from include.runs.batch import run_batch
from include.testbeds import TESTBEDS


def points_of(spec: Path, seeds: int, minutes: float, runs: int) -> list[RunSpec]:
    """Runs of a spec on virtual testbeds: of its first ``seeds`` seeds, at most ``minutes`` long,
    and ``runs`` of those, spread evenly. 0 is no limit."""
    points = [point for point in load_spec(spec).points() if not TESTBEDS[point.testbed].real_time]
    kept = set(sorted({point.seed for point in points})[: seeds or None])
    limit_min = minutes or float("inf")
    points = [point for point in points if point.seed in kept]
    every = -(-len(points) // runs) if runs else 1
    return [
        replace(point, duration_min=min(point.duration_min, limit_min))
        for point in points[:: max(1, every)]
    ]


def measure(order: dict[str, Any], root: Path) -> dict[str, Any]:
    """Measure all runs of all specs; returns the runs by spec, and failed runs."""
    points = {Path(spec).stem: points_of(Path(spec), **order["cut"]) for spec in order["specs"]}
    unique = {
        f"{point.experiment}/{point.run_id}": point for group in points.values() for point in group
    }

    def report(result: Any) -> None:
        print(f"  {result.spec.run_id}: {result.outcome}", file=sys.stderr, flush=True)

    results = run_batch(list(unique.values()), root, report=report)
    return {
        "runs": {name: [f"{point.experiment}/{point.run_id}" for point in group]
                 for name, group in points.items()},
        "failed": {f"{result.spec.experiment}/{result.spec.run_id}": result.error
                   for result in results if result.outcome == "failed"},
    }  # fmt: skip


if __name__ == "__main__":
    work = Path(sys.argv[1])
    outcome = measure(json.loads((work / "order.json").read_text()), work / "data")
    (work / "outcome.json").write_text(json.dumps(outcome))
