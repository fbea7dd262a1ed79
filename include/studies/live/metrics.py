"""A run on the live testbed beside the same run in the simulator, with several seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from include.experiment.run import Run
from include.model.compliance import LEVELS
from include.results.tables.staged import Row
from include.runs.measurements.store import RunStore
from include.studies.base import NotKnown, measured_rows
from include.studies.results import Rows

ACTIVITIES = ("upscaling", "downscaling", "migration", "host_leased", "host_released")


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What one run is held against another by.

    ``compliance_percent`` by level, ``instances`` and ``hosts`` by minute (means over operators'
    readings), ``activities`` by kind.
    """

    compliance_percent: dict[str, float]
    within_by_operator: dict[str, float]
    instances: list[float]
    hosts: list[float]
    activities: dict[str, int]


def figures_of(run: Run, store: RunStore) -> RunFigures:
    """Read a complete run."""
    slo_ms = {op.name: op.slo_ms for op in run.topology.operators}
    durations = measured_rows(store, "processing_duration").to_pylist()
    shares = [row["duration_ms"] / slo_ms[row["operator"]] for row in durations]
    activities = [row["activity"] for row in measured_rows(store, "scaling_activity").to_pylist()]
    own: dict[str, list[bool]] = {name: [] for name in slo_ms}
    for row, share in zip(durations, shares, strict=True):
        own[row["operator"]].append(share <= 1)
    return RunFigures(
        {name: 100 * fmean(share <= limit for share in shares) for name, limit in LEVELS},
        {name: 100 * fmean(values) for name, values in own.items() if values},
        _instances(measured_rows(store, "queue").to_pylist()),
        _leased(measured_rows(store, "lease").to_pylist(), run.spec.duration_s),
        {name: activities.count(name) for name in ACTIVITIES},
    )


def cell_figures(run: RunFigures) -> dict[str, float]:
    """The figures of a run that stand in cells.csv, units in their names."""
    return {
        **{f"{level}_compliance_percent": v for level, v in run.compliance_percent.items()},
        "instances_mean_count": fmean(run.instances),
        "hosts_mean_count": fmean(run.hosts),
        **{f"{kind}_count": float(count) for kind, count in run.activities.items()},
    }


def _instances(queues: Rows) -> list[float]:
    """Instances of all operators by minute, means over its readings."""
    readings: dict[float, float] = {}
    for row in queues:
        readings[row["time_s"]] = readings.get(row["time_s"], 0) + row["instances"]
    minutes: dict[int, list[float]] = {}
    for time_s, total in sorted(readings.items()):
        minutes.setdefault(int((time_s - 1e-6) // 60), []).append(total)
    return [fmean(values) for _, values in sorted(minutes.items())]


def _leased(leases: Rows, duration_s: float) -> list[float]:
    """Hosts on average, by minute."""
    spans = [(row["ordered_s"], row["ended_s"]) for row in leases]
    begins = range(0, round(duration_s), 60)
    return [
        sum(max(0.0, min(end_s, at + 60) - max(start_s, at)) for start_s, end_s in spans) / 60
        for at in begins
    ]


@dataclass(frozen=True, slots=True)
class LiveMetrics:
    """The run on real containers (none where it was left out), and its simulations."""

    live: Sequence[RunFigures]
    simulated: Sequence[RunFigures]

    def compliance(self, level: str) -> Row:
        """The row of a level's compliance. Raises NotKnown where a run is missing."""
        return self._row(f"{level} compliance (percent)", lambda run: run.compliance_percent[level])

    def instances(self) -> Row:
        """The row of the instances, over the run. Raises NotKnown where a run is missing."""
        return self._row("instances", lambda run: fmean(run.instances))

    def rows(self) -> list[Row]:
        """Every figure: ``what``, ``live``, and of the simulations ``mean``, ``low``, ``high``."""
        return [*self._rows()] if self.live and self.simulated else []

    def _rows(self) -> Iterator[Row]:
        (live,) = self.live
        yield from map(self.compliance, live.compliance_percent)
        for name in live.within_by_operator:
            what = f"real_time compliance of {name} (percent)"
            yield self._row(what, partial(_of, "within_by_operator", name))
        yield self.instances()
        yield self._row("hosts", lambda run: fmean(run.hosts))
        for what in ("instances", "hosts"):
            for minute, _ in enumerate(getattr(live, what)):
                yield self._row(f"{what} in minute {minute + 1}", partial(_of, what, minute))
        for kind in live.activities:
            yield self._row(kind, partial(_of, "activities", kind))

    def _row(self, what: str, figure: Callable[[RunFigures], float]) -> Row:
        if not (self.live and self.simulated):
            raise NotKnown(what)
        simulated = [float(figure(run)) for run in self.simulated]
        return {
            "what": what,
            "live": float(figure(self.live[0])),
            "mean": fmean(simulated),
            "low": min(simulated),
            "high": max(simulated),
        }


def _of(field: str, part: str | int, run: RunFigures) -> float:
    """One figure of several; that of an operator of which nothing was recorded is 0."""
    figures = getattr(run, field)
    return float(figures.get(part, 0.0) if isinstance(figures, dict) else figures[part])
