"""What a run is held against another by, read from its staged tables and measured rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from include.experiment.spec import RunSpec
from include.results.tables.measured import measured_rows
from include.results.tables.staged import gathered, read_staged
from include.runs.measurements.store import RunStore
from include.runs.stages import store_of

CHANGES = ("start_instance", "stop_instance", "migrate_instance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure, and how far a prediction may be from it: ``share`` of what was measured, or
    ``points``; neither where nobody has set a limit."""

    title: str
    unit: str
    share: float | None = None
    points: float | None = None

    def error(self, predicted: float, measured: float) -> float:
        """Predicted less measured: in points, or as a share of what was measured."""
        if self.points is not None:
            return predicted - measured
        if measured == 0:
            return 0.0 if predicted == 0 else float("inf")
        return predicted / measured - 1

    def holds(self, error: float) -> bool | None:
        """Whether an error is within the limit; None without one."""
        limit = self.share if self.share is not None else self.points
        return None if limit is None else abs(error) <= limit

    @property
    def limit(self) -> str:
        if self.share is not None:
            return f"{self.share:.0%}".replace("%", " %")
        return "" if self.points is None else f"{self.points:g} points"


FIGURES: Mapping[str, Figure] = {
    "instances_mean": Figure(title="mean parallelism", unit="instances", share=0.1),
    "scalings": Figure(title="scalings", unit="", share=0.2),
    "job_starts": Figure(title="starts of the job", unit=""),
    "strict_real_time_percent": Figure(title="in time", unit="%", points=3),
    "strict_near_real_time_percent": Figure(title="within 2x", unit="%", points=3),
    "strict_relaxed_percent": Figure(title="within 5x", unit="%", points=3),
    "end_to_end_percent": Figure(title="end-to-end within 2x", unit="%", points=3),
    "waiting_mean_items": Figure(title="lag, mean", unit="items"),
    "waiting_p95_items": Figure(title="lag, p95", unit="items"),
    "age_p95_s": Figure(title="age p95", unit="s"),
    "resource_cost": Figure(title="hosts", unit="cost", share=0.1),
    "strict_total_cost": Figure(title="total", unit="cost", share=0.1),
    "end_to_end_total_cost": Figure(title="end-to-end total", unit="cost", share=0.1),
}
"""By name in the CSV file."""


def figures_of(root: Path, runs: list[RunSpec]) -> dict[str, dict[str, float]]:
    """By run id, the figures of runs of one experiment whose tables are staged.

    Instances and lag are means and percentiles over the readings of the monitor, which are evenly
    spaced; instances are those that take items, of all operators. A scaling is a time at which a
    decision starts, stops or moves instances. Costs are those of the price book that ``outcomes``
    is about. A figure that a run has not, as the age of a run that completed nothing, is not in the
    result, nor is a run that the checks left out.
    """
    folder = root / runs[0].experiment
    outcomes = {row["run"]: row for row in read_staged(folder, "outcomes")}
    bills = {
        (row["run"], row["resource_cost"], row["strict_relaxed_total_cost"]): row
        for row in read_staged(folder, "cost")
    }
    ready, waiting = (
        gathered((row["run"], row[name]) for row in read_staged(folder, "timeline"))
        for name in ("ready_instances", "waiting_items")
    )
    by_run = {}
    for run in runs:
        if (outcome := outcomes.get(run.run_id)) is None:
            continue
        lag, store = waiting[run.run_id], store_of(run, root)
        bill = bills[run.run_id, outcome["resource_cost"], outcome["strict_total_cost"]]
        age_ms = outcome["age_p95_ms"]
        figures = {
            "instances_mean": float(np.mean(ready[run.run_id])),
            "scalings": float(_scalings(store)),
            "job_starts": float(_job_starts(store)),
            "strict_real_time_percent": outcome["strict_real_time_compliance_percent"],
            "strict_near_real_time_percent": outcome["strict_near_real_time_compliance_percent"],
            "strict_relaxed_percent": outcome["strict_relaxed_compliance_percent"],
            "end_to_end_percent": outcome["end_to_end_near_real_time_compliance_percent"],
            "waiting_mean_items": float(np.mean(lag)),
            "waiting_p95_items": float(np.percentile(lag, 95)),
            "age_p95_s": None if age_ms is None else age_ms / 1000,
            "resource_cost": outcome["resource_cost"],
            "strict_total_cost": outcome["strict_total_cost"],
            "end_to_end_total_cost": bill["end_to_end_relaxed_total_cost"],
        }
        by_run[run.run_id] = {name: value for name, value in figures.items() if value is not None}
    return by_run


def _scalings(store: RunStore) -> int:
    """Times at which a decision changed instances, after the deployment."""
    rows = measured_rows(store, "decision", ("time_s", "action", "accepted")).to_pylist()
    return len({row["time_s"] for row in rows if row["accepted"] and row["action"] in CHANGES})


def _job_starts(store: RunStore) -> int:
    """How often the whole job was started again: rows of an engine, events of the simulator."""
    if any(store.part("rescale", 0).parent.glob("part-*.parquet")):
        return int(measured_rows(store, "rescale", ("asked_s",)).num_rows)
    events = measured_rows(store, "event", ("event",))["event"].to_pylist()
    return sum(event == "job_restart" for event in events)
