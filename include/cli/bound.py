"""The command `tidebench bound`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from include.cli.options import runs_of
from include.model.errors import SpecError, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from include.experiment.run import Run
    from include.runs.measurements.rows import CostPartRow


LOAD_WIDTH = 44
"""Longer loads have a line of their own."""


def bound(
    experiment: Annotated[
        Path,
        typer.Argument(metavar="SPEC", help="The experiment, as of `run`; or its folder."),
    ],
    within_s: Annotated[
        float, typer.Option(min=1, help="Time limit of the solver for one floor, in seconds.")
    ] = 60,
    floor: Annotated[bool, typer.Option(help="Compute the floor, too; it takes longest.")] = True,
    parts: Annotated[
        bool, typer.Option(help="Print where the cost of each run went; needs a folder.")
    ] = False,
) -> None:
    """Compute the lowest cost of hosts with perfect foresight.

    The floor completes all work by the end of the run; the cover never falls behind. With the
    folder of an experiment, the bounds of its complete runs are stored for the next report.
    """
    from include.experiment.run import resolve
    from include.files.whole import require_writable
    from include.results.bounds.report import bounds_of, require_bounded, unbounded
    from include.results.tables.covers import NAME, stored_runs, write_covers
    from include.results.tables.regret import regret_rows

    folder = experiment.resolve() if experiment.is_dir() else None
    if parts and folder is None:
        raise SpecError("--parts", ["give the folder of an experiment that was run"])
    if folder:
        require_writable(folder / NAME)
    runs = stored_runs(folder) if folder else [resolve(spec) for spec in runs_of(experiment)]
    if folder is None:
        require_bounded(runs)
    typer.echo(f"{'load':<{LOAD_WIDTH}} {'price book':<11} {'floor':>15} {'cover':>15}")
    rows = []
    for row in bounds_of(runs, within_s if floor else None):
        least = _between(row.floor.low, row.floor.high) if row.floor else "-"
        cover = _between(row.cover, row.cover_found)
        load = str(row.load)
        if len(load) > LOAD_WIDTH:
            typer.echo(load)
            load = ""
        typer.echo(f"{load:<{LOAD_WIDTH}} {row.book.name:<11} {least:>15} {cover:>15}")
        rows.append(row)
    if folder:
        for run in runs:
            for reason in unbounded(run):
                typer.echo(f"no bound of run {run.spec.run_id}: {reason}")
        regrets = list(regret_rows(folder, rows))
        write_covers(folder, rows, regrets)
        typer.echo(f"\nCovers: {experiment / NAME}\nRegret: {command('report', experiment)}")
        if parts:
            _say_parts(regrets)


def _say_parts(rows: Sequence[tuple[Run, CostPartRow]]) -> None:
    from dataclasses import astuple

    _, *names = rows[0][1].__slots__ if rows else ("",)
    titles = "".join(f"{name.replace('_', ' '):>17}" for name in (*names, "billed"))
    typer.echo(f"\n{'run':<44} {'price book':<11}{titles}")
    for run, parts in rows:
        book, *costs = astuple(parts)
        text = "".join(f"{cost:>17.2f}" for cost in (*costs, sum(costs)))
        typer.echo(f"{run.spec.run_id:<44} {book:<11}{text}")


def _between(low: float, high: float | None) -> str:
    """A figure, or the interval that it is in."""
    if high is None:
        return f"{low:g} or more"
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
