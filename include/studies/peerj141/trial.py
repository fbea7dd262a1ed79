"""One run in memory, straight to the figures that the paper prints; nothing is stored.

What calibration needs hundreds of. Tables are built by Spark from stored rows; a test checks
that both give the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from include.experiment.prices import PRICE_BOOKS
from include.experiment.run import Run, resolve
from include.experiment.spec import RunSpec
from include.model.compliance import LEVELS
from include.model.host import PriceBook
from include.results.tables.regret import resource_cost
from include.runs.session import Session
from include.workloads.topologies import load_topology

BOOKS = ("btu10", "btu30", "btu60")


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """Compliance in percent and resource cost by price book; ``items`` is what was executed."""

    compliance_percent: tuple[float, float, float]
    """Real-time, near real-time, relaxed."""
    resource_cost: Mapping[str, float]
    items: int

    def figures(self, book: PriceBook) -> dict[str, float]:
        """Every metric of the published tables under one price book."""
        by_level: dict[str, float] = {}
        cost = self.resource_cost[book.name]
        for (level, _), percent in zip(LEVELS, self.compliance_percent, strict=True):
            penalty = (100 - percent) / 100 * self.items * book.penalty_per_item
            by_level[f"{level}_compliance"] = percent
            by_level[f"{level}_total_cost"] = cost + penalty
        return {**by_level, "resource_cost": cost}


def calibrated(spec: RunSpec, changes: Mapping[str, Any]) -> Run:
    """The run of a spec with other values in its calibration."""
    run = resolve(spec)
    calibration = {**run.calibration, **changes}
    topology = load_topology(spec.topology).with_memory_factor(calibration["memory_factor"])
    return replace(run, calibration=calibration, topology=topology)


def attempt(spec: RunSpec, changes: Mapping[str, Any]) -> CalibrationRun:
    """Simulate such a run from its first to its last second (in a worker process)."""
    run = calibrated(spec, changes)
    session = Session.open(run)
    session.deploy()
    session.run(0, run.spec.duration_s)
    tables = session.loop.testbed.take_measurements()
    tables["decision"] = {"accepted": []}
    summary = session.summary(tables)
    within = summary["samples_within"]
    leases = session.loop.testbed.leases()
    real, near, relaxed = (100 * within[level] / summary["samples"] for level, _ in LEVELS)
    return CalibrationRun(
        compliance_percent=(real, near, relaxed),
        resource_cost={
            name: resource_cost(leases, PRICE_BOOKS[name], run.spec.window_s) for name in BOOKS
        },
        items=summary["samples"] * run.calibration["sample_every_items"],
    )
