"""What the sources do not report, beside their figures: what was left undone, how old items were.

A source's compliance is that of items which were processed, so starving an operator improves it.
The strict figures of docs/metrics.md count an item that arrived and is overdue as late as well.
"""

from __future__ import annotations

from dataclasses import replace

from include.results.tables.staged import read_staged
from include.studies.base import Cell, Study, StudyData, cells_of
from include.studies.results import StudyResults

METRICS = (
    "strict_near_real_time_compliance_percent",
    "strict_relaxed_compliance_percent",
    "strict_real_time_compliance_percent",
    "unprocessed_items",
    "age_p50_ms",
    "age_p95_ms",
    "age_p99_ms",
    "strict_total_cost",
)
"""Columns of the table ``outcomes``; a run has those that apply to it."""


def evaluate(study: Study, measured: StudyData) -> StudyResults:
    """What the runs say about a study, with the strict figures of every cell in ``cells``."""
    results = study.evaluate(measured)
    if study.cell_of is None:
        return results
    found: dict[tuple[Cell, str], list[float]] = {}
    outcomes = {row["run"]: row for row in read_staged(measured.folder, "outcomes")}
    for run in measured.runs:
        if (cell := study.cell_of(run)) is None:
            continue
        for metric in METRICS:
            if (value := outcomes[run.run_id][metric]) is not None:
                found.setdefault((cell, metric), []).append(float(value))
    own = results.tables.get("cells", ())
    workload = next(iter(own[0])) if own else "scenario"
    rows = cells_of(((*cell, metric, values) for (cell, metric), values in found.items()), workload)
    return replace(results, tables={**results.tables, "cells": [*own, *rows]})
