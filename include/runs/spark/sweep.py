"""Runs shared out by Spark, from their specs to ``sweep_status.csv``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from include.experiment.spec import RunSpec
from include.files.whole import csv_text, write_bytes
from include.model.compliance import LEVEL_NAMES
from include.model.errors import SpecError
from include.runs.batch import RunResult
from include.runs.measurements.origin import BY_HAND, DagRun, mark_origin
from include.runs.measurements.store import RunStore
from include.testbeds import TESTBEDS

STATUS = "sweep_status.csv"
COLUMNS = (
    "run", "controller", "controller_options", "pattern", "pattern_options", "btu_min", "seed",
    "outcome", "took_s", "stored", "samples", *(f"{level}_percent" for level in LEVEL_NAMES),
    "error",
)  # fmt: skip
STATUS_EVERY_S = 10.0
"""How much of the statuses a driver that is killed may take along, at most."""


def sweep(
    points: Sequence[RunSpec],
    root: Path,
    *,
    master: str | None = "local[*]",
    say: Callable[[str], None],
    by: DagRun = BY_HAND,
) -> list[RunResult]:
    """Measure every point on Spark; returns their results in the order of ``points``.

    Their statuses are also written to ``<root>/<experiment>/sweep_status.csv``, every few seconds
    and however the sweep ends. Started again, it reuses what is complete. ``by`` is who measures.
    Raises SpecError for runs in real time.
    """
    from include.runs.spark.points import measure_points

    require_virtual(points)
    root = root.resolve()
    progress = _Progress(points, root / points[0].experiment, say, by)
    try:
        measure_points(points, root, master=master, report=progress.report)
    finally:
        results = progress.write()
        took_s = time.perf_counter() - progress.started_s
        say(_summary(results, len(points), took_s, progress.status_csv))
    return results


def require_virtual(points: Sequence[RunSpec]) -> None:
    """Raise SpecError for runs in real time, which Spark would measure several at once on one
    testbed; a worker that it ends gives back nothing of what its run holds."""
    if slow := sorted({point.testbed for point in points if TESTBEDS[point.testbed].real_time}):
        how = "leave --on out, or take the DAG experiment_batch"
        raise SpecError("sweep", [f"Spark measures no run in real time ({', '.join(slow)}); {how}"])


def status_of(result: RunResult) -> Mapping[str, Any]:
    """The row of a run in ``sweep_status.csv``.

    Options are JSON; ``samples`` are sampled items, the percentages their compliance over the run.
    """
    spec, percent = result.spec, result.compliance_percent
    return {
        "run": spec.run_id,
        "controller": spec.controller,
        "controller_options": json.dumps(spec.controller_options, sort_keys=True),
        "pattern": spec.pattern,
        "pattern_options": json.dumps(spec.pattern_options, sort_keys=True),
        "btu_min": spec.btu_min,
        "seed": spec.seed,
        "outcome": result.outcome,
        "took_s": result.took_s,
        "stored": result.stored,
        "samples": result.samples,
        **{f"{level}_percent": percent.get(level) for level in LEVEL_NAMES},
        "error": result.error,
    }


@dataclass(slots=True)
class _Progress:
    """What is known of the points so far, said line by line and written now and then."""

    points: Sequence[RunSpec]
    folder: Path
    say: Callable[[str], None]
    by: DagRun = BY_HAND
    started_s: float = field(default_factory=time.perf_counter)
    first_s: float = 0.0
    written_s: float = 0.0
    results: dict[str, RunResult] = field(default_factory=dict)

    @property
    def status_csv(self) -> Path:
        return self.folder / STATUS

    def report(self, result: RunResult) -> None:
        """A point has ended, one way or the other."""
        run = result.spec.run_id
        if result.outcome == "measured":  # workers know nothing of DAG runs
            mark_origin(RunStore(self.folder, run), self.by)
        now_s = time.perf_counter()
        if not self.results:
            self.first_s = self.written_s = now_s
            self.say(f"Spark is up after {now_s - self.started_s:.0f} s")
        self.results[run] = result
        head = f"[{len(self.results)}/{len(self.points)}{self._left(now_s)}]"
        self.say(f"{head} {run}  {result.line}")
        if now_s - self.written_s >= STATUS_EVERY_S:
            self.write()
            self.written_s = now_s

    def write(self) -> list[RunResult]:
        """Write what is known, in the order of the points."""
        ended = [self.results[p.run_id] for p in self.points if p.run_id in self.results]
        rows = (tuple(status_of(result).values()) for result in ended)
        write_bytes(self.status_csv, csv_text(COLUMNS, rows).encode())
        return ended

    def _left(self, now_s: float) -> str:
        """How long the points that are left take if each takes what the others took."""
        left = len(self.points) - len(self.results)
        left_s = left * (now_s - self.first_s) / max(len(self.results) - 1, 1)
        return f", {left_s / 60:.1f} min left" if left_s >= 6 else ""


def _summary(results: Sequence[RunResult], points: int, took_s: float, status_csv: Path) -> str:
    outcomes = [result.outcome for result in results]
    counts = {name: outcomes.count(name) for name in ("measured", "reused", "failed")}
    parts = [f"{count} {outcome}" for outcome, count in counts.items() if count]
    if points > len(results):
        parts.append(f"{points - len(results)} not reached")
    rate = f", {60 * counts['measured'] / took_s:.0f} runs per minute" if counts["measured"] else ""
    return f"\n{points} points: {', '.join(parts)}, in {took_s:.1f} s{rate}\nStatus: {status_csv}"
