"""A model that was fitted to one recording, held against another one of the same job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from include.advise.candidates import policy
from include.advise.job import JobModel, Readings, fit, readings_of
from include.advise.replay import ReplayConditions, Replayed, replay
from include.model.errors import SpecError
from include.recordings import Recording
from include.recordings.recording import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedFigure:
    """A figure as predicted (its mean over seeds, its lowest and highest) and as recorded."""

    name: str
    unit: str
    predicted: float
    low: float
    high: float
    recorded: float

    @property
    def error(self) -> float:
        """Predicted over recorded, less one; NaN where nothing was recorded."""
        return self.predicted / self.recorded - 1 if self.recorded else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """What came of it; ``correlation`` is that of the instances over time, by seed."""

    job: JobModel
    rows: tuple[PredictedFigure, ...]
    correlation: tuple[float, ...]


def backtest(
    fitted: Recording,
    seen: Recording,
    controller: str,
    options: Mapping[str, Any],
    seeds: Sequence[int] = (1, 2, 3),
    lag_above: float = 10_000.0,
) -> Backtest:
    """Fit the model to ``fitted`` alone, and replay the load of ``seen`` under the controller.

    Of ``seen`` the replay knows the load, the instances at the start and, where the options say
    nothing, the most that there were. Raises SpecError with what is wrong with either recording
    or the options.
    """
    job, read = fit(fitted), readings_of(seen)
    known = np.flatnonzero(~np.isnan(read.instances))
    if known.size == 0:
        raise SpecError(seen.name, ["has no readings of instances to hold the replay against"])
    given = ReplayConditions(
        instances_at_start=max(1, round(float(read.instances[known[0]]))),
        max_instances=_most(options, read),
    )
    build = policy(controller, options, given).build()
    runs = [replay(job, read.load_per_s, replace(given, seed=seed), build) for seed in seeds]
    return Backtest(
        job=job,
        rows=tuple(_compared(runs, read, lag_above)),
        correlation=tuple(_correlation(run, read) for run in runs),
    )


def _most(options: Mapping[str, Any], read: Readings) -> int:
    asked = options.get("max_instances")
    if isinstance(asked, int):
        return asked
    return max(1, round(float(np.nanmax(read.instances))))


def _correlation(run: Replayed, read: Readings) -> float:
    known = ~np.isnan(read.instances)
    if np.ptp(run.instances[known]) == 0 or np.ptp(read.instances[known]) == 0:
        return float("nan")
    return float(np.corrcoef(run.instances[known], read.instances[known])[0, 1])


def _compared(runs: Sequence[Replayed], read: Readings, lag_above: float) -> list[PredictedFigure]:
    known = {
        "instances": ~np.isnan(read.instances),
        "latency": ~np.isnan(read.latency_s),
        "lag": ~np.isnan(read.lag_items),
        "cpu": ~np.isnan(read.cpu_share),
    }

    def mean(values: FloatArray, mask: FloatArray) -> float:
        return float(values[mask].mean()) if mask.any() else float("nan")

    def median(values: FloatArray, mask: FloatArray) -> float:
        return float(np.median(values[mask])) if mask.any() else float("nan")

    def above(values: FloatArray, mask: FloatArray) -> float:
        return float((values[mask] > lag_above).mean()) if mask.any() else float("nan")

    asked = (
        ("mean instances", "", "instances", mean, "instances", "instances"),
        ("median latency", "s", "latency", median, "latency_s", "latency_s"),
        (f"time with lag above {lag_above:g}", "share", "lag", above, "lag_items", "lag_items"),
        ("mean CPU", "share", "cpu", mean, "cpu_share", "cpu_share"),
    )
    rows = []
    for name, unit, of, measure, ours, theirs in asked:
        mask = known[of]
        values = [measure(getattr(run, ours), mask) for run in runs]
        rows.append(
            PredictedFigure(
                name=name,
                unit=unit,
                predicted=float(np.mean(values)),
                low=min(values),
                high=max(values),
                recorded=measure(getattr(read, theirs), mask),
            )
        )
    return rows
