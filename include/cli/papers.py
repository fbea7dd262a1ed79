"""Repeat the evaluation of a paper, fit the simulator to one, hold autoscalers against upstream."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from include.cli.interrupt import ends_as_by_ctrl_c, ends_at_once, scratch_folder
from include.cli.options import DEFAULT_ROOT, Database, Processes, Root
from include.model.errors import GateFailed, command
from include.studies import ALIASES, STUDIES

if TYPE_CHECKING:
    from include.controllers.conformance import Conformity
    from include.experiment.spec import RunSpec
    from include.studies.base import Study
    from include.studies.page import StudyResults

Seeds = Annotated[str, typer.Option(help="Such as 1,2 or 49-72; default: those of its specs.")]
LEDGER = "include/controllers/autoscalers/deviations.md"


def reproduce(
    root: Root = DEFAULT_ROOT,
    processes: Processes = 0,
    seeds: Seeds = "",
    set_baseline: Annotated[
        bool, typer.Option(help="Compare the next reproductions with this one.")
    ] = False,
    strict: Annotated[
        bool, typer.Option(help="Fail when an error is above its limit, or runs were left out.")
    ] = False,
    database: Database = "",
) -> None:
    """Repeat the evaluation of PeerJ CS 141 and compare every figure."""
    from include.results.tables.quarantine import require_none_left_out
    from include.results.tables.staged import read_staged
    from include.studies import drift, study_named
    from include.studies.base import seeds_in

    study, chosen = study_named("peerj141"), seeds_in(seeds, "--seeds") if seeds else None
    results = _conduct(study, root, processes, chosen, database)
    if set_baseline:
        folder = root.resolve() / study.experiment
        counting = (row["run"] for row in read_staged(folder, "runs"))  # those of the cells
        digests = drift.run_digests(folder, counting)
        typer.echo(f"Baseline: {drift.set_baseline(folder, results.tables['cells'], digests)}")
    if strict:
        study.require_reproduced(results)
        require_none_left_out(root.resolve() / study.experiment)


def paper(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join((*STUDIES, *ALIASES))}.")],
    root: Root = DEFAULT_ROOT,
    processes: Processes = 0,
    seeds: Seeds = "",
    database: Database = "",
) -> None:
    """Repeat the evaluation of a paper and test each of its claims.

    A run that fails its checks is left out; the others are published and the exit code is 1.
    """
    from include.results.tables.quarantine import require_none_left_out
    from include.studies import study_named
    from include.studies.base import seeds_in

    study, chosen = study_named(name), seeds_in(seeds, "--seeds") if seeds else None
    _conduct(study, root, processes, chosen, database)
    require_none_left_out(root.resolve() / study.experiment)


def _conduct(
    study: Study, root: Path, processes: int, seeds: list[int] | None, database: str
) -> StudyResults:
    """Take a study to its page, and say what came out."""
    from include.testbeds import TESTBEDS

    points = study.runs(seeds)
    with scratch_folder() as scratch:
        if any(TESTBEDS[point.testbed].real_time for point in points):
            ends_as_by_ctrl_c()
        else:
            again = command(*sys.argv[1:])
            ends_at_once(f"Interrupted. What is complete is kept; {again} goes on.", scratch)
        return _concluded(study, points, root.resolve(), processes, database)


def _concluded(
    study: Study, points: list[RunSpec], root: Path, processes: int, database: str
) -> StudyResults:
    from include.cli.progress import Progress
    from include.experiment.size import size_of
    from include.results.tables.quarantine import read_quarantine, sentences
    from include.runs.batch import require_complete, run_batch
    from include.runs.stored import mark_asked
    from include.studies.publish import conclude

    typer.echo(f"{size_of(points)}. Runs that are measured already are reused.")
    runs = [run.run_id for run in points]
    mark_asked(root / study.experiment, runs)
    progress = Progress(len(points))
    require_complete(run_batch(points, root, processes=processes or None, report=progress.finished))
    results = conclude(root / study.experiment, runs, database, say=typer.echo)
    assert results is not None, "its runs are those of the study"
    typer.echo(f"{study.title}\n{study.summary(results)}")
    for sentence in sentences(read_quarantine(root / study.experiment)):
        typer.echo(sentence)
    typer.echo(f"Page: {root / study.experiment / 'published' / 'report.html'}")
    return results


def calibrate(
    out: Annotated[Path, typer.Option(help="The calibration file to write.")],
    evaluations: Annotated[int, typer.Option(min=42, help="Parameter sets to try.")] = 96,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds to take part.")] = 12,
    processes: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
) -> None:
    """Fit the simulator to two patterns of PeerJ CS 141."""
    from concurrent.futures import ProcessPoolExecutor

    from include.files.whole import require_writable, write_bytes
    from include.studies.peerj141 import calibration
    from include.studies.peerj141.search import search

    require_writable(out)
    with ProcessPoolExecutor(processes) as pool:
        best = search(evaluations=evaluations, seeds=seeds, pool=pool, report=_calibration_line)
        typer.echo("\nbest: " + ", ".join(f"{name} {value:g}" for name, value in best.items()))
        for patterns in (calibration.FITTED, calibration.HELD_OUT):
            fitted_errors, held_out_errors = (
                calibration.evaluate(
                    best, calibration.specs(patterns, calibration.LIMITS, numbers), pool
                )
                for numbers in (range(1, seeds + 1), range(seeds + 1, 2 * seeds + 1))
            )
            if patterns is calibration.FITTED:
                write_bytes(
                    out, calibration.as_yaml(best, fitted_errors, held_out_errors, seeds).encode()
                )
            typer.echo(f"\non {' and '.join(patterns)}, seeds that took part and others:")
            for name, errors in (*fitted_errors.items(), *held_out_errors.items()):
                typer.echo(f"  {name:<12} {errors}" if errors.cells else f"  {name:<12} no figures")
    typer.echo(f"\nwritten to {out}; name it in a spec (calibration: {out})")


def _calibration_line(turn: int, values: Any) -> None:
    typer.echo(f"{turn:>3}  " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))


def conform(
    rows: Annotated[
        list[Path] | None, typer.Argument(help="JSON files of test rows; without, the stored ones.")
    ] = None,
) -> None:
    """Run the upstream tests of autoscalers against ours."""
    from include.controllers.conformance import conform as outcomes_of
    from include.controllers.conformance import packaged_rows, read_rows

    cases = [row for path in rows for row in read_rows(path)] if rows else packaged_rows()
    outcomes = outcomes_of(cases)
    for outcome in outcomes:
        typer.echo(conformity_line(outcome))
    ran = [outcome for outcome in outcomes if not outcome.deviation]
    holding = sum(outcome.holds for outcome in ran)
    typer.echo(
        f"{holding} of {len(ran)} rows as expected; "
        f"{len(outcomes) - len(ran)} of {len(outcomes)} cannot be represented"
    )
    if holding < len(ran):
        raise GateFailed(f"{len(ran) - holding} rows differ from upstream")


def conformity_line(outcome: Conformity) -> str:
    """One row as a person reads it."""
    expected = json.dumps(outcome.row.expected)
    if outcome.got is None:
        why = f"{outcome.deviation} in {LEDGER}"
        detail = f"; {outcome.detail}" if outcome.detail else ""
        return f"-     {outcome.row.id}\n      expected {expected}, not run: {why}{detail}"
    mark = "ok   " if outcome.holds else "DIFF "
    return f"{mark} {outcome.row.id}\n      expected {expected}, got {json.dumps(outcome.got)}"
