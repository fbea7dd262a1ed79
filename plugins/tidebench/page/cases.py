"""Runs that differ in their seed only are one case: seen as their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.results.reports.tournament import controller_name, in_title
from include.results.tables.staged import gathered

SAME = (
    "experiment", "controller", "variant", "topology", "pattern", "conditions", "btu_min",
    "duration_min", "testbed", "flavor",
)  # fmt: skip
TELLING = ("experiment", "topology", "pattern", "conditions", "btu_min")
"""What labels a case beside its controller; conditions have testbed, flavor and duration."""
BY_RUN, BY_CASE = "run", "case"


@dataclass(frozen=True, slots=True)
class SeedCase:
    """What stands in one column: ``places`` are those of its runs among all that were chosen."""

    runs: tuple[Mapping[str, Any], ...]
    places: tuple[int, ...]

    @property
    def seeds(self) -> str:
        if len(self.runs) == 1:
            return f"seed {self.runs[0]['seed']}"
        return f"mean of {len(self.runs)} seeds"


def cases_of(runs: Sequence[Mapping[str, Any]], by: str) -> list[SeedCase]:
    """One per run, or one per case in the order in which the first run of each was chosen.

    Runs of a case are in the order of their seeds: measured side by side, some end before others.
    """
    places = gathered(
        (tuple(run[name] for name in SAME) if by == BY_CASE else place, place)
        for place, run in enumerate(runs)
    )
    in_order = [sorted(of_case, key=lambda k: runs[k]["seed"]) for of_case in places.values()]
    return [SeedCase(tuple(runs[k] for k in of_case), tuple(of_case)) for of_case in in_order]


def way_of(runs: Sequence[Mapping[str, Any]], choice: str) -> str:
    """How to show the runs: as asked for, else by case where some case has several."""
    if choice in (BY_RUN, BY_CASE):
        return choice
    return BY_CASE if len(cases_of(runs, BY_CASE)) < len(runs) else BY_RUN


def labels_of(cases: Sequence[SeedCase]) -> list[str]:
    """What each is called in a figure: its controller, and what else tells them apart."""
    first = [case.runs[0] for case in cases]
    telling = [name for name in TELLING if len({run[name] for run in first}) > 1]
    labels = [
        " · ".join(
            filter(None, [controller_name(run), *(_words(name, run[name]) for name in telling)])
        )
        for run in first
    ]
    labels = [f"{label} · {case.seeds}" for label, case in zip(labels, cases, strict=True)]
    if len(set(labels)) == len(labels):
        return labels
    return [f"{label} · {run['run']}" for label, run in zip(labels, first, strict=True)]


def _words(name: str, value: Any) -> str:
    return f"BTU {value:g}" if name == "btu_min" else in_title(str(value))
