"""What a nightly study keeps from one night to the next, and how it judges a night.

    <folder>/baseline.json            last night, the stored baseline of drift
    <folder>/tonight/baseline.json    tonight, once it came to its verdict
    <folder>/tonight/night.json       the DAG run that it is of

Tonight becomes last night when the next DAG run begins, so a task of tonight may be repeated and
is still held against the night before.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from include.experiment.spec import RunSpec
from include.files.whole import read_json, write_json
from include.model.errors import GateFailed, SpecError, StoreError, unknown_name
from include.results.tables.staged import Rows
from include.studies import NIGHT, PART
from include.studies.base import Study
from include.studies.drift import (
    Baseline,
    baseline_path,
    baselines,
    moved_runs,
    run_digests,
    set_baseline,
    verdict_of,
)
from include.studies.page import StudyResults

CELLS_NAMED = 20
"""How many cells that moved the reason of a failure names; drift.csv has all of them."""


def runs_of_night(
    study: Study, seeds: Sequence[int] = (), patterns: Sequence[str] = ()
) -> list[RunSpec]:
    """The runs of a study, as an experiment of their own: another one may run beside.

    With ``seeds`` or ``patterns`` those alone, as another one. Raises SpecError when none is left.
    """
    part = PART if seeds or patterns else ""
    runs = study.runs(list(seeds) or None)
    if unknown := sorted(set(patterns) - {run.pattern for run in runs}):
        known = {run.pattern for run in runs}
        raise SpecError(study.name, [unknown_name("pattern", one, known) for one in unknown])
    return [
        replace(run, experiment=f"{NIGHT}{study.name}{part}")
        for run in runs
        if not patterns or run.pattern in patterns
    ]


def begin_night(folder: Path, night: str) -> None:
    """Forget what was measured, and make the night before this one the stored baseline.

    ``night`` is the id of the DAG run; begun again under the same id it keeps its baseline.
    """
    tonight = folder / "tonight"
    try:
        of = read_json(tonight / "night.json")["night"]
    except (StoreError, KeyError, TypeError):
        of = None
    if of != night and baseline_path(tonight).is_file():
        baseline_path(tonight).replace(baseline_path(folder))
    for part in (folder / "measurements", folder / "runs"):
        if part.exists():
            shutil.rmtree(part)


def keep_night(study: Study, results: StudyResults, folder: Path, night: str) -> None:
    """Keep cells and digests of tonight for the next night, whatever the verdict."""
    write_json(folder / "tonight" / "night.json", {"night": night})
    digests = run_digests(folder, (run.run_id for run in runs_of_night(study)))
    set_baseline(folder / "tonight", results.tables.get("cells", ()), digests)


def drift_sentences(study: Study, results: StudyResults, folder: Path) -> list[str]:
    """What became of every baseline, a sentence each."""
    return [verdict_of(*one) for one in _held_against(study, results, folder)]


def require_no_drift(study: Study, results: StudyResults, folder: Path) -> None:
    """Raise GateFailed when tonight is not bit for bit last night, or a committed cell moved."""
    reasons = []
    for baseline, rows, runs in _held_against(study, results, folder):
        moved = [row for row in rows if row["state"] != "same"]
        if moved or (baseline.runs and runs):
            reasons += [verdict_of(baseline, rows, runs), *_named(moved)]
    if reasons:
        advice = "If that is meant, trigger this DAG with accept_drift; otherwise undo its cause."
        raise GateFailed("\n".join([*reasons, advice]))


def _held_against(
    study: Study, results: StudyResults, folder: Path
) -> list[tuple[Baseline, Rows, list[str]]]:
    """Every baseline with the rows of drift against it and the runs that differ."""
    digests = run_digests(folder, (run.run_id for run in runs_of_night(study)))
    drift = results.tables.get("drift", ())
    return [
        (one, [row for row in drift if row["against"] == one.name], moved_runs(one, digests))
        for one in baselines(folder, study.baseline)
    ]


def _named(moved: Sequence[Any]) -> list[str]:
    """The first cells that moved, a line each."""
    lines = [
        f"  - {row['pattern']}, {row['controller']}, BTU {row['btu_min']:g}, {row['metric']}: "
        f"{_number(row['baseline_mean'])}, now {_number(row['mean'])}"
        for row in moved[:CELLS_NAMED]
    ]
    if len(moved) > CELLS_NAMED:
        lines.append(f"  - and {len(moved) - CELLS_NAMED} more, see drift.csv")
    return lines


def _number(value: float | None) -> str:
    return "absent" if value is None else f"{value:.4f}"
