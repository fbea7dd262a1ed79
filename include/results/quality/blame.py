"""Which run a failed check is about. Pure: from checks to runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from include.results.tables.catalogue import is_by_run
from include.results.tables.quarantine import Check, Quarantine

ROWS_KEPT = 100
"""Offending rows that are kept as evidence of one check."""


def by_run(checks: Iterable[Check]) -> Quarantine:
    """Per run the checks it failed, each with its own rows only; warnings are held against none."""
    failed_by_run: dict[str, list[Check]] = {}
    for check in checks:
        if not check.refuses:
            continue
        rows_by_run: dict[str | None, list[Mapping[str, Any]]] = {}
        for row in check.rows:
            rows_by_run.setdefault(_run_of(check, row), []).append(row)
        for run, rows in rows_by_run.items():
            if run is not None:
                kept = replace(check, rows=tuple(rows[:ROWS_KEPT]))
                failed_by_run.setdefault(run, []).append(kept)
    return {run: tuple(failed) for run, failed in failed_by_run.items()}


def can_go_on_without(failed: Quarantine, runs: Sequence[str], checks: Iterable[Check]) -> bool:
    """Whether leaving out the runs that failed may make everything pass.

    Not when none failed, when none would be left, or when a table that is by run fails without a
    run to blame, as with columns that are not those of its schema. Tables over several runs are
    judged once they are built without the runs that failed.
    """
    nobodys = [
        check
        for check in checks
        if check.refuses
        and is_by_run(check.table)
        and any(_run_of(check, row) is None for row in check.rows)
    ]
    return bool(failed) and bool(set(runs) - failed.keys()) and not nobodys


def _run_of(check: Check, row: Mapping[str, Any]) -> str | None:
    """The run of an offending row, or the run that is missing; None where there is neither."""
    if not is_by_run(check.table):
        return None
    run = row.get("run")
    if run is None and check.columns == ("run",):
        run = row.get("missing")
    return run if isinstance(run, str) else None
