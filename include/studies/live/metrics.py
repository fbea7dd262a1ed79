"""A run on the live testbed beside the same run in the simulator, with several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from include.experiment.run import Run
from include.model.compliance import LEVEL_NAMES, LEVELS
from include.results.tables.measured import measured_rows
from include.results.tables.staged import Row, Rows, gathered
from include.runs.measurements.store import RunStore
from include.studies.base import NotKnown

ACTIVITIES = ("upscaling", "downscaling", "migration", "host_leased", "host_released")


COMPLIANCE = {level: f"{level} compliance (percent)" for level in LEVEL_NAMES}
"""What the figure of each level is called."""
Figures = Mapping[str, float]
"""What one run is held against another by, in the order of the page."""


def figures_of(run: Run, store: RunStore) -> Figures:
    """Read a complete run. Instances are of all operators, by minute means over its readings."""
    slo_ms = {op.name: op.slo_ms for op in run.topology.operators}
    durations = measured_rows(store, "processing_duration").to_pylist()
    shares = [row["duration_ms"] / slo_ms[row["operator"]] for row in durations]
    activities = [row["activity"] for row in measured_rows(store, "scaling_activity").to_pylist()]
    own = gathered((row["operator"], s <= 1) for row, s in zip(durations, shares, strict=True))
    instances = _instances(measured_rows(store, "queue").to_pylist())
    hosts = _leased(measured_rows(store, "lease").to_pylist(), run.spec.duration_s)
    figures = {COMPLIANCE[name]: 100 * fmean(s <= limit for s in shares) for name, limit in LEVELS}
    for name in slo_ms:
        if name in own:
            figures[f"real_time compliance of {name} (percent)"] = 100 * fmean(own[name])
    figures |= {"instances": fmean(instances), "hosts": fmean(hosts)}
    figures |= {f"instances in minute {n}": mean for n, mean in enumerate(instances, start=1)}
    figures |= {f"hosts in minute {n}": mean for n, mean in enumerate(hosts, start=1)}
    return figures | {kind: float(activities.count(kind)) for kind in ACTIVITIES}


def cell_figures(run: Figures) -> dict[str, float]:
    """The figures of a run that stand in cells.csv, units in their names."""
    return {
        **{f"{level}_compliance_percent": run[name] for level, name in COMPLIANCE.items()},
        "instances_mean_count": run["instances"],
        "hosts_mean_count": run["hosts"],
        **{f"{kind}_count": run[kind] for kind in ACTIVITIES},
    }


def _instances(queues: Rows) -> list[float]:
    """Instances of all operators by minute, means over its readings."""
    readings = sorted(gathered((row["time_s"], row["instances"]) for row in queues).items())
    minutes = gathered((int((at_s - 1e-6) // 60), sum(counts)) for at_s, counts in readings)
    return [fmean(totals) for totals in minutes.values()]


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

    live: Sequence[Figures]
    simulated: Sequence[Figures]

    def rows(self) -> list[Row]:
        """Every figure of the run on real containers."""
        return [self.row(what) for run in self.live for what in run] if self.simulated else []

    def row(self, what: str) -> Row:
        """A figure: ``what``, ``live``, and of the simulations ``mean``, ``low``, ``high``.

        That of an operator of which a simulation recorded nothing is 0. Raises NotKnown where a
        run is missing.
        """
        if not (self.live and self.simulated):
            raise NotKnown(what)
        simulated = [run.get(what, 0.0) for run in self.simulated]
        return {
            "what": what,
            "live": self.live[0][what],
            "mean": fmean(simulated),
            "low": min(simulated),
            "high": max(simulated),
        }
