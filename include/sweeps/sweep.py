"""A sweep from its spec to ``sweep_status.csv``, as the command line and the DAG run it."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from include.experiment.problems import problems_of
from include.experiment.spec import RunSpec, load_spec
from include.measurements.store import write_bytes
from include.model.errors import SpecError
from include.sweeps.point import PointStatus

STATUS = "sweep_status.csv"


def checked_points(path: Path) -> list[RunSpec]:
    """The points of a spec file. Raises SpecError with every problem of every point at once."""
    points = list({point.run_id: point for point in load_spec(path).points()}.values())
    # Seeds differ in nothing that can be wrong, and there are many of them.
    kinds = {replace(point, seed=0).run_id: point for point in points}
    problems = [problem for point in kinds.values() for problem in problems_of(point)]
    if problems:
        raise SpecError(f"experiment {points[0].experiment}", dict.fromkeys(problems))
    return points


def sweep(
    points: Sequence[RunSpec],
    root: Path,
    *,
    master: str | None = "local[*]",
    say: Callable[[str], None],
) -> list[PointStatus]:
    """Measure every point on Spark; returns one status per point, in the order of ``points``.

    Also written to ``<root>/<experiment>/sweep_status.csv``, as far as the sweep has come when
    it is interrupted. Started again, it reuses what is complete.
    """
    from include.sweeps.spark import measure_points

    root = root.resolve()
    found: dict[str, PointStatus] = {}
    started_s = time.perf_counter()

    def report(status: PointStatus) -> None:
        if not found:
            say(f"Spark is up after {time.perf_counter() - started_s:.0f} s")
        found[status.run] = status
        say(f"[{len(found)}/{len(points)}] {status.line()}")

    try:
        measure_points(points, root, master=master, report=report)
    finally:
        rows = [found[point.run_id] for point in points if point.run_id in found]
        status_csv = root / points[0].experiment / STATUS
        write_bytes(status_csv, _as_csv(rows))
        say(_summary(rows, len(points), time.perf_counter() - started_s, status_csv))
    return rows


def _summary(rows: Sequence[PointStatus], points: int, took_s: float, status_csv: Path) -> str:
    counts = {one: [r.outcome for r in rows].count(one) for one in ("measured", "reused", "failed")}
    parts = [f"{count} {outcome}" for outcome, count in counts.items() if count]
    if points > len(rows):
        parts.append(f"{points - len(rows)} not reached")
    rate = f", {60 * counts['measured'] / took_s:.0f} runs per minute" if counts["measured"] else ""
    return f"\n{points} points: {', '.join(parts)}, in {took_s:.1f} s{rate}\nStatus: {status_csv}"


def _as_csv(rows: Sequence[PointStatus]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, [one.name for one in fields(PointStatus)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue().encode()
