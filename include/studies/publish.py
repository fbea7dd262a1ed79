"""A study from its measured runs to its page: its tables as CSV beside the tables of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from include.results.quality.gates import check_tables
from include.results.reports.page import report_files
from include.results.reports.publish import ALWAYS, Tables, publish
from include.results.tables.build import build_tables
from include.results.tables.staged import read_staged
from include.runs.measurements.origin import BY_HAND, DagRun
from include.studies import STUDIES, printed, study_of
from include.studies.base import Study, StudyData, cells_of
from include.studies.page import StudyResults, render_page
from include.studies.provenance import seen_rows


def conclude(
    folder: Path,
    runs: Sequence[str] = (),
    database_url: str = "",
    *,
    say: Callable[[str], None],
    master: str = "local[*]",
    end_to_end: bool = False,
) -> StudyResults | None:
    """Build the tables of these runs or of all, check and publish them; DAGs do it in tasks.

    ``database_url`` is the results database, SQLite beside ``folder`` by default; ``say`` hears of
    every stage. Returns the results of a study. Raises what the stages raise.
    """
    say("building tables ...")
    build_tables(folder, runs, master=master)
    say("validating ...")
    check_tables(folder)
    say("publishing ...")
    url = database_url or f"sqlite:///{folder.parent / 'results.db'}"
    return publish_experiment(folder, url, end_to_end=end_to_end)


def evaluate(study: Study, folder: Path) -> StudyResults:
    """What the staged runs in the folder of an experiment say about a study."""
    return with_strict_figures(study, measured_in(study, folder))


def measured_in(study: Study, folder: Path) -> StudyData:
    """The runs of a study that are staged, in the order of the study.

    Raises StoreError when the tables were not built.
    """
    rows = read_staged(folder, "runs")
    staged, seeds = {row["run"] for row in rows}, sorted({row["seed"] for row in rows})
    runs = (replace(run, experiment=folder.name) for run in study.runs(seeds))
    return StudyData(folder, [run for run in runs if run.run_id in staged])


def publish_experiment(
    folder: Path, database_url: str, by: DagRun = BY_HAND, *, end_to_end: bool = False
) -> StudyResults | None:
    """Publish what any experiment is published as: a study of its own, or the report of its runs.

    The report has what the studies' sources print beside what was measured, and ranks controllers
    by the age of items where ``end_to_end`` says so. An experiment that is only called like a
    study, with none of its runs, is not one. Returns the results of a study.
    """
    study = study_of(folder.name)
    if study is not None and measured_in(study, folder).runs:
        return publish_study(study, folder, database_url, by)
    files = partial(report_files, reference=printed, end_to_end=end_to_end)
    publish(folder, database_url, by, files)
    return None


def publish_study(
    study: Study, folder: Path, database_url: str, by: DagRun = BY_HAND
) -> StudyResults:
    """Write ``folder/published`` and upsert the tables into the results database.

    ``folder`` is that of the experiment, with tables that were built and checked. The files are
    one CSV per table of the study, seen.csv, report.html, and what ``publish`` writes anyway.
    Raises GateFailed, StoreError and PublishError as ``publish`` does.
    """
    measured = measured_in(study, folder)
    results = with_strict_figures(study, measured)
    seeds = ", ".join(str(seed) for seed in sorted({run.seed for run in measured.runs}))

    def files(
        tables: Tables, checks: Mapping[str, Any], origin: Mapping[str, Any]
    ) -> Iterator[tuple[str, str]]:
        seen = seen_rows(study.name) if study.name in STUDIES else []
        texts = study.csv_files({**results.tables, "seen": seen})
        yield from texts.items()
        about = {**origin, "study": study.name, "title": study.title, "seeds": seeds, "seen": seen}
        beside = sorted([*texts, *(f"{table}.parquet" for table in tables), *ALWAYS])
        yield "report.html", render_page(results, about, checks, beside)

    publish(folder, database_url, by, files)
    return results


STRICT = (
    "strict_near_real_time_compliance_percent",
    "strict_relaxed_compliance_percent",
    "strict_real_time_compliance_percent",
    "unprocessed_items",
    "age_p50_ms",
    "age_p95_ms",
    "age_p99_ms",
    "strict_total_cost",
)
"""What sources do not report: columns of the table ``outcomes``; a run has those that apply to it.

A source's compliance is that of items which were processed, so starving an operator improves it.
The strict figures of docs/metrics.md count an item that arrived and is overdue as late as well.
"""


def with_strict_figures(study: Study, measured: StudyData) -> StudyResults:
    """What the runs say about a study, with the strict figures of every cell in ``cells``."""
    results = study.evaluate(measured)
    outcomes = {row["run"]: row for row in read_staged(measured.folder, "outcomes")}
    strict = (
        (*cell, metric, float(value))
        for run in measured.runs
        if (cell := study.cell_of(run)) is not None
        for metric in STRICT
        if (value := outcomes[run.run_id][metric]) is not None
    )
    cells = [*results.tables.get("cells", ()), *cells_of(strict, study.workload)]
    return replace(results, tables={**results.tables, "cells": cells})
