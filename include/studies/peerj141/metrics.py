"""What claims are about: figures of cells, scaling activity and curves, by pattern and policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import correlation, fmean
from typing import Any

from include.results.tables.staged import Rows, gathered
from include.studies.base import known
from include.studies.peerj141.published import METRICS, published_cells
from include.studies.peerj141.specs import BTUS_MIN

Case = tuple[str, str, float]
"""Pattern, policy (btu or threshold) and BTU in minutes."""
ACTIVITIES = ("upscaling", "downscaling", "migrations")


@dataclass(frozen=True, slots=True)
class PeerjMetrics:
    """Figures by pattern, policy and BTU, of the paper or of one of our BTU-based controllers.

    ``cells`` are means; ``activities`` are instances scaled or moved per minute and run;
    ``curves`` are minute, level, hosts and instances, means over seeds at monitoring times.
    """

    cells: Mapping[tuple[str, str, float, str], float]
    activities: Mapping[Case, Sequence[float]] = field(default_factory=dict)
    curves: Mapping[Case, Sequence[tuple[float, float, float, float]]] = field(default_factory=dict)

    def cell(self, pattern: str, policy: str, btu_min: float, metric: str) -> float:
        """The mean of one cell. Raises NotKnown."""
        return float(known(self.cells, (pattern, policy, btu_min, metric)))

    def compliance(self, pattern: str, policy: str, level: str, btu_min: float) -> int:
        """A compliance as the paper prints it, in whole percent. Raises NotKnown."""
        return round(self.cell(pattern, policy, btu_min, f"{level}_compliance"))

    def scalings(self, pattern: str, policy: str, btu_min: float, from_min: int = 0) -> float:
        """Instances scaled or moved from a minute to the end, per run. Raises NotKnown."""
        return float(sum(known(self.activities, (pattern, policy, btu_min))[from_min:]))

    def instances(self, case: Case, from_min: float, to_min: float) -> float:
        """Mean instances in a span of minutes. Raises NotKnown."""
        return fmean(
            instances
            for minute, _, _, instances in known(self.curves, case)
            if from_min <= minute < to_min
        )

    def hosts(self, case: Case, from_min: float, to_min: float) -> list[float]:
        """Hosts at every monitoring time in a span of minutes. Raises NotKnown."""
        curve = known(self.curves, case)
        return [hosts for minute, _, hosts, _ in curve if from_min <= minute < to_min]

    def alignment(self, case: Case) -> float:
        """Correlation of level and instances over the run. Raises NotKnown."""
        _, levels, _, instances = zip(*known(self.curves, case), strict=True)
        varies = len(set(levels)) > 1 and len(set(instances)) > 1
        return correlation(levels, instances) if varies else 0.0


@cache
def metrics_of_paper() -> PeerjMetrics:
    """What the paper prints; a figure without a BTU holds for each."""
    return PeerjMetrics(
        {
            (pattern, approach, btu, metric): figure.mean
            for (pattern, approach, btu_min, metric), figure in published_cells().items()
            for btu in ([btu_min] if btu_min is not None else BTUS_MIN)
        }
    )


def metrics_of_runs(tables: Mapping[str, Rows], controller: str) -> PeerjMetrics:
    """What was measured, with one of our controllers in the place of the BTU-based approach."""
    policies = {controller: "btu", "threshold": "threshold", "fixed": "fixed"}
    cells = {
        (row["pattern"], policies[row["controller"]], row["btu_min"], row["metric"]): row["mean"]
        for row in tables["cells"]
        if row["controller"] in policies and row["metric"] in METRICS
    }
    btus_min = sorted({key[2] for key in cells})
    cases: dict[str, list[Case]] = {}
    for row in tables["runs"]:
        if policy := policies.get(row["controller"]):
            own = [row["btu_min"]] if policy == "btu" else btus_min
            cases[row["run"]] = [(row["pattern"], policy, btu_min) for btu_min in own]
    activities, curves = _activities(tables["scaling"], cases), tables["timeline"]
    return PeerjMetrics(cells, activities, mean_curves(curves, cases))


def mean_curves(
    timeline: Rows, cases: Mapping[str, Sequence[Any]]
) -> dict[Any, list[tuple[float, float, float, float]]]:
    """Minute, level, hosts and instances at every monitoring time, means over a case's runs."""
    readings = gathered(
        ((case, row["time_s"] / 60), (row["level_machines"] or 0, row["hosts"], row["instances"]))
        for row in timeline
        for case in cases.get(row["run"], ())
    )
    return gathered(
        (case, (minute, *map(fmean, zip(*values, strict=True))))
        for (case, minute), values in sorted(readings.items())
    )


def _activities(scaling: Rows, cases: Mapping[str, Sequence[Case]]) -> dict[Case, list[float]]:
    """Means over runs, which have a row for every minute."""
    counts = gathered(
        ((case, row["minute"]), sum(row[name] for name in ACTIVITIES))
        for row in scaling
        for case in cases.get(row["run"], ())
    )
    return gathered((case, fmean(values)) for (case, _), values in sorted(counts.items()))
