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
    """The runs of a spec on virtual testbeds: its first seeds, cut to so many minutes, and of
    those so many, spread evenly. 0 cuts nothing."""
    points = [one for one in load_spec(spec).points() if not TESTBEDS[one.testbed].real_time]
    kept = set(sorted({one.seed for one in points})[: seeds or None])
    limit_min = minutes or float("inf")
    points = [one for one in points if one.seed in kept]
    every = -(-len(points) // runs) if runs else 1
    return [
        replace(one, duration_min=min(one.duration_min, limit_min))
        for one in points[:: max(1, every)]
    ]


def measure(order: dict[str, Any], root: Path) -> dict[str, Any]:
    """Measure all runs of all specs; what each spec stands for, and the runs that failed."""
    points = {Path(spec).stem: points_of(Path(spec), **order["cut"]) for spec in order["specs"]}
    unique = {f"{one.experiment}/{one.run_id}": one for of in points.values() for one in of}

    def report(result: Any) -> None:
        print(f"  {result.spec.run_id}: {result.outcome}", file=sys.stderr, flush=True)

    results = run_batch(list(unique.values()), root, report=report)
    return {
        "runs": {name: [f"{one.experiment}/{one.run_id}" for one in of]
                 for name, of in points.items()},
        "failed": {f"{one.spec.experiment}/{one.spec.run_id}": one.error
                   for one in results if one.outcome == "failed"},
    }  # fmt: skip


if __name__ == "__main__":
    work = Path(sys.argv[1])
    outcome = measure(json.loads((work / "order.json").read_text()), work / "data")
    (work / "outcome.json").write_text(json.dumps(outcome))
