"""Curves of several runs on one grid of time, for the script that draws them over each other."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from include.results.reports.results import Row
from include.results.reports.statistics import mean_of
from tidebench.page.cases import SeedCase, labels_of

TABLE = "timeline"
QUANTITIES: Mapping[str, str] = {
    "level_machines": "Load (level units)",
    "hosts": "Hosts",
    "instances": "Instances",
    "waiting_items": "Waiting items",
}
MOST_POINTS = 480
LEAST_STEP_S = 15.0
Values = list[float | None]


def curves_of(
    cases: Sequence[SeedCase], tables_by_run: Sequence[Mapping[str, list[Row]]]
) -> dict[str, Any]:
    """For every quantity a curve per case: a run, or the mean of several with its 95 % interval.

    ``tables_by_run`` has the rows of ``timeline`` of every run that was chosen. ``x`` is in
    minutes; a point stands for the mean of the ``step_s`` seconds before it.
    """
    end_s = max(float(tables["runs"][0]["duration_min"]) * 60 for tables in tables_by_run)
    step_s = max(LEAST_STEP_S, end_s / MOST_POINTS)
    grid = [step_s * k for k in range(math.ceil(end_s / step_s - 1e-9) + 1)]
    return {
        "x": [_short(at_s / 60) for at_s in grid],
        "step_s": step_s,
        "labels": labels_of(cases),
        "charts": [
            {
                "name": name,
                "title": title,
                "series": [
                    _series([_on_grid(tables_by_run[k][TABLE], name, grid) for k in case.places])
                    for case in cases
                ],
            }
            for name, title in QUANTITIES.items()
        ],
    }


def _on_grid(rows: Sequence[Row], name: str, grid: Sequence[float]) -> Values:
    """Means of the readings between grid points; between readings the last one holds.

    Nothing before the first reading, and nothing after the last.
    """
    readings = [(float(row["time_s"]), float(row[name])) for row in rows if row[name] is not None]
    times = [at_s for at_s, _ in readings]
    values: Values = []
    begin = 0
    for at_s in grid:
        end = bisect_right(times, at_s)
        if end > begin:
            values.append(sum(value for _, value in readings[begin:end]) / (end - begin))
        else:
            values.append(values[-1] if values and end < len(readings) else None)
        begin = end
    return values


def _series(runs: Sequence[Values]) -> dict[str, Values]:
    if len(runs) == 1:
        return {"mean": [_short(value) for value in runs[0]]}
    points = list(_points(runs))
    return {
        name: [_short(point[place]) for point in points]
        for place, name in enumerate(("mean", "low", "high"))
    }


def _points(runs: Sequence[Values]) -> Iterator[tuple[float | None, float | None, float | None]]:
    """Mean and interval at every point of the grid, over the runs that have a value there."""
    for at_once in zip(*runs, strict=True):
        values = [value for value in at_once if value is not None]
        if not values:
            yield None, None, None
        else:
            mean = mean_of(values)
            half = mean.half or 0.0
            yield mean.mean, max(mean.mean - half, 0.0), mean.mean + half


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
