"""What the evaluation of Henge is made of: utilities and reconfigurations of runs over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from include.experiment.spec import RunSpec
from include.model.decision import Reason
from include.studies.base import NotKnown, StudyData

START_S = 900.0
"""When Henge begins to act."""
FULL = 99.5
"""Percent of the maximum that count as all of it, as for the controller."""


@dataclass(frozen=True, slots=True)
class JobChange:
    """What one decision did to one job: how many instances it stopped, and the first reason."""

    time_s: float
    job: str
    stopped: int
    reason: Reason


@dataclass(frozen=True)
class HengeRun:
    """One run: utilities of the jobs, shape (times, jobs), NaN where a job has none."""

    spec: RunSpec
    jobs: tuple[str, ...]
    times_s: np.ndarray
    utility: np.ndarray
    juice: np.ndarray
    max_utility: np.ndarray
    """(jobs,)"""
    changes: tuple[JobChange, ...]
    instances_at_end: Mapping[str, int]

    @cached_property
    def satisfaction(self) -> np.ndarray:
        """Percent of the maximal utility of the jobs that are there, at every time."""
        there = ~np.isnan(self.utility)
        most = (there * self.max_utility).sum(axis=1)
        total = 100 * np.nansum(self.utility, axis=1)
        share: np.ndarray = np.divide(total, most, out=np.zeros(len(most)), where=most > 0)
        return share

    def mean_satisfaction(self, from_s: float = 0.0, to_s: float = float("inf")) -> float:
        """The mean over a span of time, in percent."""
        span = (self.times_s > from_s) & (self.times_s <= to_s)
        return float(self.satisfaction[span].mean())

    def at_max(self, from_s: float) -> float | None:
        """The first time after ``from_s`` when every job has its maximal utility, or None."""
        full = (self.times_s > from_s) & (self.satisfaction >= FULL)
        return float(self.times_s[full][0]) if full.any() else None

    def stays_at_max(self, from_s: float) -> bool:
        """Whether every job has its maximal utility at all times after ``from_s``."""
        return bool((self.satisfaction[self.times_s > from_s] >= FULL).all())

    def reconfigurations(self, job: str = "") -> list[JobChange]:
        """Of one job or of all: those that gave a job instances because it missed its SLO."""
        own = (change for change in self.changes if job in ("", change.job))
        return [change for change in own if change.reason is Reason.SLO_VIOLATED]

    def final_utility(self) -> np.ndarray:
        """Utility of each job over the last ten minutes, as a share of its maximum."""
        last = self.times_s > self.times_s[-1] - 600
        share: np.ndarray = np.nanmean(self.utility[last], axis=0) / self.max_utility
        return share


def figures_of(run: HengeRun) -> dict[str, float]:
    """The figures of a run that stand in cells.csv, units in their names."""
    return {
        "satisfaction_mean_percent": run.mean_satisfaction(),
        "satisfaction_end_percent": run.mean_satisfaction(float(run.times_s[-1]) - 600),
        "reconfigurations_count": float(len(run.reconfigurations())),
        "instances_at_end_count": float(sum(run.instances_at_end.values())),
    }


def read_run(measured: StudyData, spec: RunSpec) -> HengeRun:
    """Read the measured rows of a complete run."""
    rows = measured.columns(spec, "tenant")
    names, job = np.unique(rows["tenant"].astype(str), return_inverse=True)
    times_s, at = np.unique(rows["time_s"], return_inverse=True)
    columns = {}
    for name in ("utility", "juice", "max_utility"):
        columns[name] = np.full((times_s.size, names.size), np.nan)
        columns[name][at, job] = rows[name]
    changes = _changes(measured.columns(spec, "decision"), names.tolist())
    return HengeRun(
        spec=spec,
        jobs=tuple(names.tolist()),
        times_s=times_s,
        utility=columns["utility"],
        juice=columns["juice"],
        max_utility=np.nanmax(columns["max_utility"], axis=0),
        changes=tuple(changes),
        instances_at_end=_last_instances(measured.columns(spec, "queue")),
    )


def _changes(rows: Mapping[str, Any], jobs: Sequence[str]) -> list[JobChange]:
    changes: dict[tuple[float, str], list[Any]] = {}
    for time_s, action, operator, reason, accepted in zip(
        *(rows[name] for name in ("time_s", "action", "operator", "reason", "accepted")),
        strict=True,
    ):
        job = str(operator).rpartition(".")[0]
        if accepted and job in jobs and action in ("start_instance", "stop_instance"):
            entry = changes.setdefault((float(time_s), job), [0, Reason(reason)])
            entry[0] += action == "stop_instance"
    return [JobChange(time_s, job, *entry) for (time_s, job), entry in sorted(changes.items())]


def _last_instances(rows: Mapping[str, Any]) -> dict[str, int]:
    last = rows["time_s"] == rows["time_s"].max()
    pairs = zip(rows["operator"][last], rows["instances"][last], strict=True)
    return {str(operator): int(instances) for operator, instances in pairs}


@dataclass(frozen=True)
class HengeMetrics:
    """All runs that claims are about."""

    runs: Sequence[HengeRun]

    def of(self, topology: str, controller: str = "henge") -> list[HengeRun]:
        """Runs of a topology, one per seed. Raises NotKnown when none was measured."""
        rows = [
            run
            for run in self.runs
            if (run.spec.topology, run.spec.controller) == (topology, controller)
        ]
        if not rows:
            raise NotKnown(f"no run of {controller} on {topology}")
        return rows

    def one(self, topology: str) -> HengeRun:
        return min(self.of(topology), key=lambda run: run.spec.seed)

    def initial(self, slo_ms: int, rate: int, controller: str = "henge") -> dict[int, HengeRun]:
        """Runs of one SLO and rate (1 or 2 times), by the initial number of executors.

        Raises NotKnown when none was measured.
        """
        own = self.of(f"tenants_linear_{slo_ms}", controller)
        levels = sorted({run.spec.pattern_options["level"] for run in own})
        if rate > len(levels):
            raise NotKnown(f"no run of {controller} at {rate} times the rate, {slo_ms} ms")
        return {
            int(run.spec.controller_options["instances"].partition("=")[2]): run
            for run in own
            if run.spec.pattern_options["level"] == levels[rate - 1]
        }
