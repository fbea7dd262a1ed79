"""Every controller on every workload: the tables of the page and the points of the figure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Any

from include.model.compliance import in_words
from include.results.reports.statistics import half_interval
from include.results.tables.staged import Row, grouped

MANY_CONTROLLERS = 4
"""With more than these, or with several topologies, an experiment is a tournament."""

END_TO_END_SHARE = "end_to_end_near_real_time_compliance_percent"
END_TO_END_TOTAL = "end_to_end_near_real_time_total_cost"

METRICS: Mapping[str, tuple[str, int, bool]] = {
    "strict_near_real_time_compliance_percent": ("strict near real-time, %", 1, True),
    "strict_relaxed_compliance_percent": ("strict relaxed, %", 1, True),
    "age_p95_ms": ("age p95, s", 3, False),
    "strict_real_time_compliance_percent": ("strict real-time, %", 1, True),
    END_TO_END_SHARE: ("end-to-end near real-time, %", 1, True),
    "unprocessed_items": ("unprocessed items", 0, False),
    "strict_total_cost": (in_words("strict_total_cost"), 2, False),
    END_TO_END_TOTAL: (in_words(END_TO_END_TOTAL), 2, False),
    "age_p50_ms": ("age p50, s", 3, False),
    "age_p99_ms": ("age p99, s", 3, False),
    "host_hours": ("host hours", 2, False),
    "resource_cost": ("cost of hosts", 2, False),
    "begun_cost": ("cost of begun BTUs", 2, False),
    "regret": ("hosts / cover", 2, False),
    "total_regret": ("near real-time total / cover", 2, False),
    "total_cost": (in_words("total_cost"), 2, False),
    "relaxed_compliance_percent": ("relaxed, %", 1, True),
    "real_time_compliance_percent": ("real-time, %", 1, True),
    "latency_p50_ms": ("latency p50, s", 3, False),
    "latency_p95_ms": ("latency p95, s", 3, False),
    "scaling_events": ("scaling events", 1, False),
    "items_in_pauses": ("items in pauses", 0, False),
    "host_events": ("host events", 1, False),
    "utility_percent": ("utility, %", 1, True),
}
"""What the page shows of the table tournament: heading, decimals, whether more is better. First
what nobody improves by leaving items undone. Milliseconds of the table are seconds here, from
`ROUGH_S` on with one decimal."""
ROUGH_S = 10.0

GROUPS = ("published", "in use today", "", "ours")
"""The values of ``include.controllers.base.Group`` in the order in which they are shown; none is
that of a controller that is not registered."""
OTHERS = "not registered"
"""The title of that group."""

Workload = tuple[str, str, str]
"""Topology, pattern and conditions."""
Case = tuple[str, str, str, float]
"""A workload and a BTU in minutes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The mean of a controller; ``half`` the interval around it is None where there is one run."""

    mean: float
    half: float | None
    decimals: int
    best: bool

    @property
    def value(self) -> str:
        return f"{self.mean:,.{self.decimals}f}"

    @property
    def spread(self) -> str:
        """The interval around it; empty where there is none."""
        return "" if self.half is None else f"± {self.half:,.{self.decimals}f}"


@dataclass(frozen=True, slots=True)
class Standing:
    """One controller on a workload; a metric that does not apply has no cell."""

    name: str
    runs: int
    cells: Mapping[str, Cell]
    controller: str
    group: str = ""
    """Where the controller comes from; empty for one that is not registered."""


@dataclass(frozen=True, slots=True)
class Match:
    """All controllers on one workload: published ones, those in use today, others, then ours; each
    group in the order of names."""

    workload: Workload
    metrics: tuple[str, ...]
    standings: tuple[Standing, ...]
    end_to_end: bool = False
    """Whether the controllers are ranked and drawn by the age of items."""

    @property
    def title(self) -> str:
        """Topology and pattern, and what else was not left at its default."""
        topology, pattern, conditions = self.workload
        words = f"{topology} · {pattern}".replace("_", " ")
        return f"{words} · {in_title(conditions)}" if conditions else words

    @property
    def groups(self) -> list[tuple[str, list[Standing]]]:
        """The standings by group, with its title."""
        by_group = groupby(self.standings, lambda standing: standing.group or OTHERS)
        return [(title, list(group)) for title, group in by_group]

    @property
    def quality(self) -> str:
        """What is held against cost: end-to-end compliance where asked for, utility where tenants
        have intents, else strict compliance."""
        if self.end_to_end:
            return END_TO_END_SHARE
        return "utility_percent" if "utility_percent" in self.metrics else _COMPLIANCE

    @property
    def ranked_by(self) -> str:
        """What weighs service against cost: the end-to-end total where asked for, utility where
        tenants have intents, else the total."""
        if self.end_to_end:
            return END_TO_END_TOTAL
        return "utility_percent" if "utility_percent" in self.metrics else "strict_total_cost"

    @property
    def ranking(self) -> list[Standing]:
        """The standings by the mean of ``ranked_by``, the best first; who has none comes last."""
        _, _, more = METRICS[self.ranked_by]

        def behind(standing: Standing) -> float:
            cell = standing.cells.get(self.ranked_by)
            return inf if cell is None else -cell.mean if more else cell.mean

        return sorted(self.standings, key=behind)


_COMPLIANCE = "strict_relaxed_compliance_percent"


def is_tournament(runs: Sequence[Row]) -> bool:
    """Whether an experiment has more than one topology or more than four controllers."""
    controllers = {row["controller"] for row in runs}
    return len({row["topology"] for row in runs}) > 1 or len(controllers) > MANY_CONTROLLERS


def matches(tournament: Sequence[Row], *, end_to_end: bool = False) -> list[Match]:
    """The rows of the table tournament by workload, with 95 % confidence intervals."""
    by_workload = grouped(tournament, itemgetter("topology", "pattern", "conditions"))
    return [_match(workload, rows, end_to_end) for workload, rows in by_workload.items()]


def _match(workload: Workload, rows: Sequence[Row], end_to_end: bool) -> Match:
    best = {metric: _best(metric, rows) for metric in METRICS}
    several = len({row["btu_min"] for row in rows}) > 1

    def name_of(row: Row) -> str:
        return controller_name(row) + (f" BTU {row['btu_min']:g}" if several else "")

    standings = [
        Standing(
            name=name,
            runs=max(row["runs"] for row in own_rows),
            cells={row["metric"]: _cell(row, best[row["metric"]]) for row in own_rows},
            controller=own_rows[0]["controller"],
            group=group_of(own_rows[0]["controller"]),
        )
        for name, own_rows in grouped(rows, name_of).items()
    ]
    return Match(
        workload=workload,
        metrics=tuple(metric for metric in METRICS if best[metric] is not None),
        standings=tuple(sorted(standings, key=lambda standing: GROUPS.index(standing.group))),
        end_to_end=end_to_end,
    )


def controller_name(row: Mapping[str, Any]) -> str:
    """A controller with its options: ``threshold (scale_up_above_items=500)``."""
    return f"{row['controller']} ({row['variant']})" if row["variant"] else str(row["controller"])


def in_title(conditions: str) -> str:
    """Conditions as titles have them: the duration as ``60 min``."""
    return re.sub(r"\bduration_min=([\d.]+)", r"\1 min", conditions)


def short_names(short_of: Mapping[str, str]) -> dict[str, str]:
    """Names to those without options, where these do not tell two of one name apart."""
    count = Counter(short_of.values())
    return {name: name if count[short] > 1 else short for name, short in short_of.items()}


def case_of(row: Row) -> Case:
    """The case that a row of a table over several runs is about."""
    return row["topology"], row["pattern"], row["conditions"], row["btu_min"]


def group_of(controller: str) -> str:
    """Where a controller comes from: one of GROUPS."""
    from include.controllers import CONTROLLERS  # with numpy, which a summary does without

    registered = CONTROLLERS.get(controller)
    return registered.group.value if registered else ""


def _best(metric: str, rows: Sequence[Row]) -> float | None:
    """The best mean, rounded as it is shown; None where nobody has one."""
    _, _, more = METRICS[metric]
    means = [_rounded(row) for row in rows if row["metric"] == metric]
    return (max if more else min)(means) if means else None


def _scale(metric: str) -> float:
    """From the unit of the table to that of the heading."""
    return 1e-3 if metric.endswith("_ms") else 1.0


def _decimals(row: Row) -> int:
    _, decimals, _ = METRICS[row["metric"]]
    seconds = row["metric"].endswith("_ms") and _scale(row["metric"]) * row["mean"] >= ROUGH_S
    return 1 if seconds else decimals


def _rounded(row: Row) -> float:
    """The mean as it is shown."""
    mean: float = row["mean"]
    return round(_scale(row["metric"]) * mean, _decimals(row))


def _cell(row: Row, best: float | None) -> Cell:
    scale = _scale(row["metric"])
    half = half_interval(row["sigma"], row["runs"])
    return Cell(
        mean=scale * row["mean"],
        half=None if half is None else scale * half,
        decimals=_decimals(row),
        best=_rounded(row) == best,
    )
