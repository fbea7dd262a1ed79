"""What a study is: the evaluation of a source again, as runs, what they say, and what it claims.

A study is a folder beside this file and a line in ``STUDIES``. Its predicates ask its metrics
whether a claim holds; ``publish`` takes any study from its runs to its page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from include.experiment.spec import SPECS, RunSpec, Seeds, load_spec
from include.files.whole import csv_text
from include.model.errors import SpecError
from include.results.reports.comparison import Reference, nothing_printed
from include.results.reports.statistics import mean_of
from include.results.tables.catalogue import PUBLISHED
from include.results.tables.measured import measured_rows
from include.results.tables.staged import Row, Rows, gathered, read_staged
from include.runs.measurements.store import RunStore
from include.studies.page import StudyResults, on_pattern, why_apart
from include.studies.page import summary as claims_summary
from include.workloads.topologies import complaint

Answer = tuple[bool, str]
"""Whether a claim holds, and the numbers that say so."""
Predicate = Callable[..., Answer]
"""Asks metrics whether a claim holds. Raises NotKnown where they lack a figure."""

Cell = tuple[str, str]
"""Workload and controller, as a row of cells.csv names them."""
CellValue = tuple[str, str, str, float]
"""Workload, controller, metric, which has its unit in the name, and its value in one run."""


class NotKnown(Exception):
    """A figure that a predicate asks for was neither printed nor measured."""


class ClaimOutcome(StrEnum):
    """What became of a claim; the value is what ``claims.csv`` says."""

    HOLDS = "yes"
    FAILS = "no"
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class ClaimCase:
    """What a claim is asked of: the arguments of its predicate, and the columns that name them."""

    of: tuple[Any, ...]
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyData:
    """The runs that a study is judged by; ``folder`` is that of its experiment."""

    folder: Path
    runs: Sequence[RunSpec]

    @cached_property
    def tables(self) -> dict[str, list[Row]]:
        """The staged tables, which have passed their checks."""
        return {table: read_staged(self.folder, table) for table in PUBLISHED}

    def store(self, run: RunSpec) -> RunStore:
        return RunStore(self.folder, run.run_id)

    def columns(self, run: RunSpec, table: str, *names: str) -> dict[str, Any]:
        """The measured rows of a run as arrays, by column: those named, or all."""
        rows = measured_rows(self.store(run), table, names)
        return {n: rows[n].to_numpy(zero_copy_only=False) for n in rows.column_names}


def plain(value: Any, digits: int = 12) -> str:
    """A cell of a CSV file: so many digits that count, nothing for what is not known."""
    if value is None:
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


class Study:
    """One source: what it is called, its runs, how they are judged, and what is published.

    A study is a subclass. It reads its runs as metrics, of whatever type its predicates ask.
    """

    name: str
    """Also that of its folder beside this file."""
    title: str
    experiment: str
    """What its runs are measured as: the name of a folder below the data root."""
    specs: Sequence[str]
    """Its runs: names of files in include/experiment/specs."""
    columns: Mapping[str, Sequence[str]] = {}
    """Columns of its CSV files, where they are not those of the first row."""
    workload = "scenario"
    """The first column of its cells.csv: scenario or pattern."""
    baseline: Path | None = None
    """Cells of results that were looked at, in the columns of cells.csv; results may not drift."""
    printed: Reference = staticmethod(nothing_printed)
    """What the source prints about a run, to stand beside it on the page of any experiment."""

    @cached_property
    def claims(self) -> Sequence[Mapping[str, Any]]:
        """What the source claims, as ``claims.yaml`` lists it."""
        text = (Path(__file__).parent / self.name / "claims.yaml").read_text(encoding="utf-8")
        return tuple(yaml.safe_load(text))

    @property
    def predicates(self) -> Mapping[str, Predicate]:
        """What its claims ask, by name: ``x`` is ``_x`` in ``predicates.py`` of its folder."""
        module = import_module(f"{__package__}.{self.name}.predicates")
        names = (claim["predicate"] for claim in self.claims)
        return {name: getattr(module, f"_{name}") for name in names}

    def runs(self, seeds: Sequence[int] | None = None) -> list[RunSpec]:
        """Its runs with some seeds, or with those of its specs."""
        return runs_of(self.experiment, self.specs, seeds)

    def read(self, measured: StudyData) -> Any:
        """The metrics of what was measured and has passed the checks."""
        raise NotImplementedError

    def evaluate(self, measured: StudyData) -> StudyResults:
        """Its results, of what was measured and has passed the checks."""
        return self.results_of(self.read(measured))

    def results_of(self, metrics: Any) -> StudyResults:
        """Claims, tables of its own, and cells."""
        claims, cells = self.claims_of(metrics), cells_of(self.cell_values(metrics), self.workload)
        tables = {"claims": claims, **self.tables(metrics), "cells": cells}
        return StudyResults(tables=tables)

    def tables(self, metrics: Any) -> Mapping[str, Rows]:
        """What it tabulates beside claims and cells."""
        return {}

    def cases(self, metrics: Any, claim: Mapping[str, Any]) -> Iterable[ClaimCase]:
        """What a claim is asked of."""
        return [ClaimCase((metrics,))]

    def beside(self, predicate: Predicate, case: ClaimCase) -> Mapping[str, Any]:
        """What else is said of a claim in a case, by column."""
        return {}

    def claims_of(self, metrics: Any) -> list[Row]:
        """One row per claim and case that it is asked of; unknown where its runs are not there.

        ``published`` are the figures of the source and ``measured`` ours, ``holds`` is a
        ClaimOutcome. ``apart`` is what sets the claim apart, and ``because`` why (both empty for
        most).
        """
        rows, predicates = [], self.predicates
        for claim in self.claims:
            predicate = predicates[claim["predicate"]]
            for case in self.cases(metrics, claim):
                holds, numbers = ask(predicate, *case.of)
                pattern = case.about.get("pattern")
                kind, because = why_apart(claim, pattern)
                published = on_pattern(claim.get("published", ""), pattern)
                row = {name: claim[name] for name in ("id", "section", "claim")} | dict(case.about)
                row |= {"published": published, "holds": holds.value}
                row |= {"measured": numbers, "apart": kind, "because": because}
                rows.append({**row, **self.beside(predicate, case)})
        return rows

    def cell_values(self, metrics: Any) -> Iterable[CellValue]:
        """The values of which cells.csv has the means."""
        return ()

    def cell_of(self, run: RunSpec) -> Cell | None:
        """The cell that gets the strict figures of a run; None where no cell gets them."""
        return None

    def cell(self, column: str, value: Any) -> str:
        """A cell of its CSV files, by column and value."""
        return plain(value)

    def csv_files(self, tables: Mapping[str, Rows]) -> dict[str, str]:
        """Every table that has columns, as CSV by the name of its file."""
        files = {}
        for name, rows in tables.items():
            if columns := self.columns.get(name) or (tuple(rows[0]) if rows else ()):
                cells = ([self.cell(column, row[column]) for column in columns] for row in rows)
                files[f"{name}.csv"] = csv_text(columns, cells)
        return files

    def summary(self, results: StudyResults) -> str:
        """What a terminal shows of its results."""
        return claims_summary(results)

    def require_reproduced(self, results: StudyResults) -> None:
        """Raise GateFailed for results too far from the source, where there is a limit."""


def runs_of(
    experiment: str, specs: Iterable[str], seeds: Sequence[int] | None = None
) -> list[RunSpec]:
    """Every run of some spec files as one experiment; what two of them share is run once.

    ``specs`` are names of files in include/experiment/specs; ``seeds`` take the place of theirs.
    """
    changes: dict[str, Any] = {"name": experiment}
    if seeds is not None:
        changes["seeds"] = list(seeds)
    runs: dict[str, RunSpec] = {}
    for name in specs:
        for point in load_spec(SPECS / f"{name}.yaml").model_copy(update=changes).points():
            runs.setdefault(point.run_id, point)
    return list(runs.values())


def seeds_in(text: str, where: str) -> list[int]:
    """The seeds that were typed, each once. Raises SpecError about ``where`` for other text."""
    try:
        return list(dict.fromkeys(TypeAdapter(Seeds).validate_python(text)))
    except ValidationError as error:
        problems = [complaint(problem, "seeds") for problem in error.errors(include_url=False)]
        raise SpecError(where, problems) from None


def known(figures: Mapping[Any, Any], key: Any) -> Any:
    """The figure of a key. Raises NotKnown when there is none."""
    if key not in figures:
        raise NotKnown(key)
    return figures[key]


def ask(predicate: Predicate, *of: Any) -> tuple[ClaimOutcome, str]:
    """Whether a claim holds, and its numbers; errors but NotKnown are errors and pass through."""
    try:
        holds, numbers = predicate(*of)
    except NotKnown:
        return ClaimOutcome.UNKNOWN, ""
    return ClaimOutcome.HOLDS if holds else ClaimOutcome.FAILS, numbers


def cells_of(values: Iterable[CellValue], workload: str = "scenario") -> list[Row]:
    """Rows of ``cells.csv``; ``workload`` names the first column: scenario or pattern."""
    cells = gathered(((of, controller, metric), value) for of, controller, metric, value in values)
    means = {cell: mean_of(samples) for cell, samples in cells.items()}
    return [
        {workload: of, "controller": controller, "metric": metric, **mean._asdict()}
        | {"sigma": mean.known_sigma}
        for (of, controller, metric), mean in means.items()
    ]
