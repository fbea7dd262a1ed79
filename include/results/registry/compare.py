"""Which rows may stand beside each other, and what keeps the others apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.results.registry.form import SharedResults, SharedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedRow:
    """A row with the file that it is from."""

    row: SharedRow
    of: SharedResults

    @property
    def source(self) -> str:
        """Who measured it, as far as they say, and which file."""
        return f"{self.of.by}: {self.of.name}" if self.of.by else self.of.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable:
    """Rows that every rule allows beside each other, the cheapest first."""

    rows: Sequence[SourcedRow]
    apart: Mapping[str, Sequence[str]]
    """Which rules keep it from other groups of the same topology, pattern and BTU, by the
    controllers of that group."""

    @property
    def title(self) -> str:
        """Topology, pattern and BTU, as people call them."""
        return _title(self.rows[0].row)


RULES: Mapping[str, Callable[[SourcedRow], Any]] = {
    "topology": lambda one: one.row.topology_sha256,
    "load": lambda one: sorted({(run.seed, run.arrivals_sha256) for run in one.row.runs}),
    "prices": lambda one: one.row.prices_sha256,
    "metric definitions": lambda one: one.of.metrics_sha256,
    "calibration": lambda one: one.row.setting.calibration_sha256,
    "faults": lambda one: one.row.setting.faults_sha256,
    "testbed": lambda one: one.row.setting.testbed,
    "flavor": lambda one: one.row.setting.flavor,
    "duration": lambda one: one.row.setting.duration_min,
    "monitoring period": lambda one: one.row.setting.monitor_every_s,
    "hosts": lambda one: (one.row.setting.hosts, one.row.setting.max_hosts),
    "BTU": lambda one: one.row.btu_min,
}
"""What has to be equal. The code may differ: a controller of one's own is other code."""
SHOWN: Mapping[str, Callable[[SourcedRow], str]] = {
    "load": lambda one: f"seeds {', '.join(str(run.seed) for run in _by_seed(one))}",
    "testbed": lambda one: one.row.setting.testbed,
    "flavor": lambda one: one.row.setting.flavor,
    "duration": lambda one: f"{one.row.setting.duration_min:g} min",
    "monitoring period": lambda one: f"{one.row.setting.monitor_every_s:g} s",
    "hosts": lambda one: f"{one.row.setting.hosts} to {one.row.setting.max_hosts}",
    "BTU": lambda one: f"{one.row.btu_min:g} min",
}
"""Rules whose values say something to a reader; those of the others are digests."""


def compare_results(found: Sequence[SharedResults]) -> list[Comparable]:
    """Every row in the group where it belongs, groups by title, then by their first row."""
    groups: list[list[SourcedRow]] = []
    for one in (SourcedRow(row=row, of=results) for results in found for row in results.rows):
        group = next((group for group in groups if not differences(group[0], one)), None)
        groups.append([one]) if group is None else group.append(one)
    for group in groups:
        group.sort(key=_by_cost)
    groups.sort(key=lambda group: (_title(group[0].row), _by_cost(group[0])))
    return [Comparable(rows=group, apart=_apart(group, groups)) for group in groups]


def differences(one: SourcedRow, other: SourcedRow) -> list[str]:
    """The rules that keep two rows apart, with both values where a reader can tell them."""
    return [
        _difference(rule, one, other) for rule, value in RULES.items() if value(one) != value(other)
    ]


def _difference(rule: str, one: SourcedRow, other: SourcedRow) -> str:
    shown = SHOWN.get(rule)
    if shown is None:
        return rule
    if shown(one) == shown(other):
        return f"{rule} ({shown(one)} in both, but the arrivals differ)"
    return f"{rule} ({shown(one)}, {shown(other)})"


def _apart(
    group: Sequence[SourcedRow], groups: Sequence[Sequence[SourcedRow]]
) -> dict[str, Sequence[str]]:
    title = _title(group[0].row)
    others = [one for one in groups if one is not group and _title(one[0].row) == title]
    return {_name(other): differences(group[0], other[0]) for other in others}


def _name(group: Sequence[SourcedRow]) -> str:
    return ", ".join(f"{one.row.controller} ({one.source})" for one in group)


def _title(row: SharedRow) -> str:
    return f"{row.topology}, {row.pattern}, BTU {row.btu_min:g} min"


def _by_seed(one: SourcedRow) -> list[Any]:
    """One run of every seed."""
    return list({run.seed: run for run in sorted(one.row.runs, key=lambda run: run.seed)}.values())


def _by_cost(one: SourcedRow) -> tuple[Any, ...]:
    cost = one.row.figures.get("strict_relaxed_total_cost")
    return (cost is None, cost.mean if cost else 0.0, one.row.controller, one.source)
