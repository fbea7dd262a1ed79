"""What the evaluation of Heinze et al. consists of: figures of runs, and their means over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from include.experiment.spec import RunSpec
from include.results.reports.statistics import mean_of
from include.studies.base import StudyData, known

OVERLOADED = 0.95
"""A host that uses this share of its CPU or more has no reserve."""

DEFAULTS = {"lower": 0.3, "upper": 0.8, "imp": 0.2, "dur": 80.0}

Case = tuple[str, str, str]
"""Controller, configuration ("default" or what differs from it) and pattern."""


METRICS: Mapping[str, str] = {
    "points": "measurement_points_count",
    "min_utilisation": "min_utilisation_share",
    "avg_utilisation": "avg_utilisation_share",
    "max_utilisation": "max_utilisation_share",
    "latency_p10_ms": "latency_p10_ms",
    "latency_p50_ms": "latency_p50_ms",
    "latency_p90_ms": "latency_p90_ms",
    "latency_mean_ms": "latency_mean_ms",
    "hosts": "hosts_mean_count",
    "migrations": "migrations_count",
    "host_changes": "host_changes_count",
    "overload_share": "overloaded_readings_share",
}
"""What each is called where its unit must be in the name, as in cells.csv."""
FuguRun = Mapping[str, float]
"""METRICS of one run as the paper measures it, section V: means over measurement points of the
least, mean and highest utilisation of a host (shares of its CPU), and percentiles over them of the
mean latency of the queries. ``overload_share`` of all readings of a host are overloaded.
"""


def read_run(measured: StudyData, spec: RunSpec) -> FuguRun:
    """Read the measured rows of a complete run."""
    hosts = measured.columns(spec, "host_utilisation", "time_s", "cpu_share")
    tenants = measured.columns(spec, "tenant", "time_s", "latency_ms")
    activity = measured.columns(spec, "scaling_activity", "activity")["activity"]
    per_point = _by_time(hosts["time_s"], hosts["cpu_share"])
    latency = _by_time(tenants["time_s"], tenants["latency_ms"])
    # While a query is paused nothing leaves it; a point is the mean of those that delivered.
    delivered = (values[~np.isnan(values)] for values in latency)
    latency_ms = np.array([values.mean() for values in delivered if values.size])
    p10, p50, p90 = np.percentile(latency_ms, [10, 50, 90]).tolist()
    return {
        "points": len(per_point),
        "min_utilisation": fmean(float(values.min()) for values in per_point),
        "avg_utilisation": fmean(float(values.mean()) for values in per_point),
        "max_utilisation": fmean(float(values.max()) for values in per_point),
        "latency_p10_ms": p10,
        "latency_p50_ms": p50,
        "latency_p90_ms": p90,
        "latency_mean_ms": float(latency_ms.mean()),
        "hosts": fmean(len(values) for values in per_point),
        "migrations": int((activity == "migration").sum()),
        "host_changes": int(np.isin(activity, ["host_leased", "host_released"]).sum()),
        "overload_share": float((hosts["cpu_share"] >= OVERLOADED).mean()),
    }


def case_of(spec: RunSpec) -> Case:
    """What a run is an example of."""
    options = spec.controller_options
    differs = [
        f"{name} {value:g}"
        for name, value in options.items()
        if name in DEFAULTS and value != DEFAULTS[name]
    ]
    return spec.controller, ", ".join(differs) or "default", spec.pattern


@dataclass(frozen=True, slots=True)
class FuguMetrics:
    """Runs, by case and seed."""

    runs: Mapping[Case, Mapping[int, FuguRun]]

    def mean(self, case: Case, metric: str) -> float:
        """The mean over seeds. Raises NotKnown for a case that was not measured."""
        return fmean(run[metric] for run in known(self.runs, case).values())

    def seeds(self) -> list[int]:
        """Seeds that every case was measured with."""
        shared = set.intersection(*(set(runs) for runs in self.runs.values()))
        return sorted(shared)

    def of_seed(self, seed: int) -> FuguMetrics:
        return FuguMetrics({case: {seed: runs[seed]} for case, runs in self.runs.items()})

    def rows(self) -> list[dict[str, Any]]:
        """One row per case: means over seeds, and the deviation of what the claims are about."""
        return [_row(case, list(runs.values())) for case, runs in self.runs.items()]


def metrics_of(runs: Iterable[tuple[RunSpec, FuguRun]]) -> FuguMetrics:
    """Runs by case and seed; the same point of two experiments counts once."""
    cases: dict[Case, dict[int, FuguRun]] = {}
    for spec, figures in runs:
        cases.setdefault(case_of(spec), {})[spec.seed] = figures
    return FuguMetrics(cases)


def _row(case: Case, runs: Sequence[FuguRun]) -> dict[str, Any]:
    row: dict[str, Any] = dict(zip(("controller", "configuration", "pattern"), case, strict=True))
    row |= {"seeds": len(runs)} | {name: fmean(run[name] for run in runs) for name in METRICS}
    for name in ("avg_utilisation", "latency_p90_ms"):
        row[f"{name}_sigma"] = mean_of([run[name] for run in runs]).known_sigma
    return row


def _by_time(times_s: Any, values: Any) -> list[Any]:
    """Values of each time, in order of time."""
    order = np.argsort(times_s, kind="stable")
    _, first = np.unique(times_s[order], return_index=True)
    return np.split(values[order], first[1:])
