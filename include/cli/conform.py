"""Hold our autoscalers against upstream's own tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from include.controllers.conformance import Conformity, packaged_rows, read_rows
from include.controllers.conformance import conform as outcomes_of
from include.model.errors import GateFailed

LEDGER = "include/controllers/autoscalers/deviations.md"


def conform(
    rows: Annotated[
        list[Path] | None, typer.Argument(help="JSON files of test rows; without, the stored ones.")
    ] = None,
) -> None:
    """Run the upstream tests of autoscalers against ours."""
    cases = [row for path in rows for row in read_rows(path)] if rows else packaged_rows()
    outcomes = outcomes_of(cases)
    for outcome in outcomes:
        typer.echo(line(outcome))
    ran = [outcome for outcome in outcomes if not outcome.deviation]
    holding = sum(outcome.holds for outcome in ran)
    typer.echo(
        f"{holding} of {len(ran)} rows as expected; "
        f"{len(outcomes) - len(ran)} of {len(outcomes)} cannot be represented"
    )
    if holding < len(ran):
        raise GateFailed(f"{len(ran) - holding} rows differ from upstream")


def line(outcome: Conformity) -> str:
    """One row as a person reads it."""
    expected = json.dumps(outcome.row.expected)
    if outcome.got is None:
        why = f"{outcome.deviation} in {LEDGER}"
        detail = f"; {outcome.detail}" if outcome.detail else ""
        return f"-     {outcome.row.id}\n      expected {expected}, not run: {why}{detail}"
    mark = "ok   " if outcome.holds else "DIFF "
    return f"{mark} {outcome.row.id}\n      expected {expected}, got {json.dumps(outcome.got)}"
