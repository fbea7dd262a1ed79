"""PeerJ CS 141 as a study: verdict, claims, statistics and drift beside its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.model.errors import GateFailed
from include.results.reports.statistics import STATISTICS_COLUMNS
from include.results.tables.catalogue import schema_of
from include.studies.base import Study
from include.studies.drift import CELL_COLUMNS, DIGITS, DRIFT_COLUMNS
from include.studies.peerj141.claims import CLAIM_COLUMNS
from include.studies.peerj141.findings import Findings, find
from include.studies.peerj141.judgement import JUDGEMENT_COLUMNS
from include.studies.peerj141.page import render_page
from include.studies.peerj141.published import printed
from include.studies.peerj141.specs import BASELINE, EXPERIMENT, runs
from include.studies.peerj141.verdict import VERDICT_COLUMNS

COLUMNS: Mapping[str, Sequence[str]] = {
    "claims": CLAIM_COLUMNS,
    "cells": CELL_COLUMNS,
    "verdict": VERDICT_COLUMNS,
    "judgement": JUDGEMENT_COLUMNS,
    "comparison": STATISTICS_COLUMNS,
    "elasticity": (
        "pattern", "controller", "btu_min", "seed", "run", "scope",
        *(name for name in schema_of("elasticity").column_names if name not in ("run", "scope")),
    ),
    "drift": DRIFT_COLUMNS,
}  # fmt: skip


ANSWERS = {True: "reproduced", False: "not reproduced", None: "not judged, too few seeds"}


def rounded(column: str, value: Any) -> str:
    """A cell of a CSV file; absent values are empty, BTUs are whole minutes."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if column == "btu_min":
            return f"{value:g}"
        return f"{value:.4g}" if column.endswith("_p") else f"{value:.{DIGITS}f}"
    return str(value)


def summary(findings: Findings) -> str:
    """What a terminal shows: errors per pattern and controller, claims, drift."""
    lines = [f"{'mean absolute error':<44}{'error':>10}  {'inside':>9}"]
    for row in findings.errors:
        name = f"  {row['pattern']}, {row['controller']}, {row['kind']}"
        unit = "points" if row["unit"] == "points" else "%"
        error = f"{row['mean_absolute_error']:.1f} {unit}"
        lines.append(f"{name:<44}{error:>10}  {row['inside']:>3} of {row['cells']:>2}")
    lines += ["", *verdict_sentences(findings)]
    lines += ["", claims_sentence(findings)]
    return "\n".join([*lines, *findings.drift_sentences, ""])


def claims_sentence(findings: Findings) -> str:
    """How many claims hold; those that the paper's own tables contradict are counted apart."""
    apart = [row for row in findings.claims if row["holds_in_paper"] == "no"]
    answers = [row["holds"] for row in findings.claims if row["holds"] and row not in apart]
    held = sum(row["holds"] == "yes" for row in apart)
    return (
        f"Claims: {answers.count('yes')} of {len(answers)} hold; apart from them {held} of "
        f"{len(apart)} that the paper's own tables contradict."
    )


def verdict_sentences(findings: Findings) -> list[str]:
    """The mean error of every judged group with its interval, limit and answer."""
    return [
        f"{row['controller']}, {row['kind']}, {row['patterns']} patterns: "
        f"{row['mean_absolute_error']:.2f} [{row['interval_low']:.2f}, {row['interval_high']:.2f}] "
        f"{'points' if row['unit'] == 'points' else '%'}, allowed {row['limit']:g}: "
        f"{ANSWERS[row['holds']]}"
        for row in findings.judgement
        if row["judged"] and row["interval_low"] is not None
    ]


def require_reproduced(findings: Findings) -> None:
    """Raise GateFailed when the paper is not reproduced, with why and every cell outside."""
    if not findings.shortfalls:
        return
    reasons = "\n".join(f"  - {sentence}" for sentence in findings.shortfalls)
    listed = "\n".join(
        f"  - {row['pattern']}, {row['controller']}, BTU {row['btu_min'] or '-'}, "
        f"{row['metric']}: published {row['published_mean']:g}, measured "
        f"{row['measured_mean']:.2f} ({row['error']:+.1f} {row['error_unit']}, tolerance "
        f"{row['tolerance']:.1f})"
        for row in findings.outside
    )
    raise GateFailed(
        f"The paper is not reproduced.\n{reasons}\n{len(findings.outside)} of "
        f"{len(findings.verdict)} published cells differ by more than chance.\n{listed}"
    )


STUDY = Study(
    name="peerj141",
    title="Cost-efficient enactment of stream processing topologies (PeerJ CS 141)",
    experiment=EXPERIMENT,
    runs=runs,
    evaluate=find,
    render=render_page,
    summary=summary,
    require_reproduced=require_reproduced,
    baseline=BASELINE,
    printed=printed,
    columns=COLUMNS,
    cell=rounded,
)
