"""A sweep from its spec to ``sweep_status.csv``, as the command line and the DAG run it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from include.experiment.spec import RunSpec
from include.files.whole import csv_text, write_bytes
from include.runs.measurements.origin import BY_HAND, DagRun, mark_origin
from include.runs.measurements.store import RunStore
from include.runs.spark.point import PointStatus

STATUS = "sweep_status.csv"
STATUS_EVERY_S = 10.0
"""How much of the statuses a driver that is killed may take along, at most."""


def sweep(
    points: Sequence[RunSpec],
    root: Path,
    *,
    master: str | None = "local[*]",
    say: Callable[[str], None],
    by: DagRun = BY_HAND,
) -> list[PointStatus]:
    """Measure every point on Spark; returns one status per point, in the order of ``points``.

    Also written to ``<root>/<experiment>/sweep_status.csv``, every few seconds and however the
    sweep ends. Started again, it reuses what is complete. ``by`` is who measures.
    """
    from include.runs.spark.points import measure_points

    root = root.resolve()
    progress = _Progress(points, root / points[0].experiment, say, by)
    try:
        measure_points(points, root, master=master, report=progress.report)
    finally:
        rows = progress.write()
        took_s = time.perf_counter() - progress.started_s
        say(_summary(rows, len(points), took_s, progress.status_csv))
    return rows


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
    statuses: dict[str, PointStatus] = field(default_factory=dict)

    @property
    def status_csv(self) -> Path:
        return self.folder / STATUS

    def report(self, status: PointStatus) -> None:
        """A point has ended, one way or the other."""
        if status.outcome == "measured":  # workers know nothing of DAG runs
            mark_origin(RunStore(self.folder, self.folder.name, status.run), self.by)
        now_s = time.perf_counter()
        if not self.statuses:
            self.first_s = self.written_s = now_s
            self.say(f"Spark is up after {now_s - self.started_s:.0f} s")
        self.statuses[status.run] = status
        self.say(f"[{len(self.statuses)}/{len(self.points)}{self._left(now_s)}] {status.line()}")
        if now_s - self.written_s >= STATUS_EVERY_S:
            self.write()
            self.written_s = now_s

    def write(self) -> list[PointStatus]:
        """Write what is known, in the order of the points."""
        rows = [
            self.statuses[point.run_id] for point in self.points if point.run_id in self.statuses
        ]
        write_bytes(self.status_csv, _as_csv(rows))
        return rows

    def _left(self, now_s: float) -> str:
        """How long the points that are left take if each takes what the others took."""
        left = len(self.points) - len(self.statuses)
        left_s = left * (now_s - self.first_s) / max(len(self.statuses) - 1, 1)
        return f", {left_s / 60:.1f} min left" if left_s >= 6 else ""


def _summary(rows: Sequence[PointStatus], points: int, took_s: float, status_csv: Path) -> str:
    counts = {
        outcome: [r.outcome for r in rows].count(outcome)
        for outcome in ("measured", "reused", "failed")
    }
    parts = [f"{count} {outcome}" for outcome, count in counts.items() if count]
    if points > len(rows):
        parts.append(f"{points - len(rows)} not reached")
    rate = f", {60 * counts['measured'] / took_s:.0f} runs per minute" if counts["measured"] else ""
    return f"\n{points} points: {', '.join(parts)}, in {took_s:.1f} s{rate}\nStatus: {status_csv}"


def _as_csv(rows: Sequence[PointStatus]) -> bytes:
    columns = [field.name for field in fields(PointStatus)]
    return csv_text(columns, [tuple(asdict(row).values()) for row in rows]).encode()
