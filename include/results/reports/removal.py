"""Removing runs: what was measured of them, and what the results database says of them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from include.files.whole import read_json
from include.model.errors import StoreError, unknown_name
from include.results.reports.crate import KEPT_CODE, METADATA
from include.results.reports.database import removed_rows
from include.results.reports.results import runs_of
from include.runs.measurements import locks
from include.runs.measurements.locks import alone, locked
from include.runs.measurements.store import RunStore
from include.runs.stored import forget_asked

REPORT = ("published", "staged", "data_docs", KEPT_CODE)


def remove_runs(
    folder: Path, runs: Sequence[str], database_url: str, *, even_if_taken: bool = False
) -> list[str]:
    """Remove runs of the experiment in ``folder`` for good; returns what was done, in sentences.

    Its pages and the tables over several runs are those of the last report until the next one;
    with the last complete run they go, too. ``even_if_taken`` removes an interrupted run also when
    a DAG run has had its turn with it; who says so knows that it is over.

    Raises StoreError, with every problem at once and before anything is removed: for runs that
    are neither stored nor published, and for those that may be under way. Raises PublishError when
    the database cannot be written, SetupError when a file cannot be removed; repeated, it removes
    what is left.
    """
    require_known(folder, runs, database_url)
    with alone(folder, locks.REPORT):  # one under way would publish them again
        return _remove(folder, runs, database_url, even_if_taken)


def _remove(folder: Path, runs: Sequence[str], database_url: str, even_if_taken: bool) -> list[str]:
    taken = [
        f"run {run!r} is being measured by another process; end it, then remove the run"
        for run in sorted({*runs}.intersection(locked(folder)))
    ]
    if not even_if_taken:
        taken += [_may_be_under_way(folder, run) for run in runs]
    if any(taken):
        raise StoreError("\n".join(filter(None, taken)))
    stored = _stored(folder)
    complete = {path.parent.name for path in folder.glob("runs/*/manifest.json")}
    left = complete - set(runs)  # an interrupted one is in no report
    with removed_rows(database_url, folder.name, runs if left else None) as rows:
        for run in stored & set(runs):
            with alone(folder, run):
                RunStore(folder, run).remove()
        forget_asked(folder, runs)
        for name in () if left else REPORT:
            shutil.rmtree(folder / name, ignore_errors=True)
        if not left:
            (folder / METADATA).unlink(missing_ok=True)
    return [
        *(
            f"removed {'the measurements' if run in stored else 'what was published'} of run {run}"
            for run in runs
        ),
        f"removed {rows} rows of the results database",
        f"{len(left)} complete runs of {folder.name} are left; the next report is of these"
        if left
        else f"no complete run of {folder.name} is left, so its report is removed, too",
    ]


def known_runs(folder: Path, database_url: str) -> set[str]:
    """Ids of all runs of an experiment that are stored or published."""
    return _stored(folder) | set(runs_of(database_url, folder.name))


def require_known(folder: Path, runs: Sequence[str], database_url: str) -> None:
    """Raise StoreError, with every problem at once, for runs that are not there."""
    names = known_runs(folder, database_url)
    if not names:
        raise StoreError(f"{folder} holds no run, so there is none to remove")
    problems = [unknown_name("run", run, names) for run in runs if run not in names]
    if problems:
        raise StoreError("\n".join(problems))


def _stored(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("runs/*") if path.is_dir()}


def _may_be_under_way(folder: Path, run: str) -> str:
    """Why a run may be under way; empty when it is not. Only Airflow knows which DAG runs are."""
    store, turns = RunStore(folder, run), folder / "turns.json"
    if store.manifest.is_file() or not (store.home.is_dir() and turns.is_file()):
        return ""
    taken = read_json(turns)
    holder = taken.get(run) or taken.get("report")
    if not holder:
        return ""
    return (
        f"run {run!r} is not complete and the run {holder[1]} of the DAG {holder[0]} may be "
        "measuring it. Remove it with the DAG remove_runs, which waits for that, or add "
        "--even-if-taken when you know that it is over"
    )
