"""Check a spec, and measure its runs."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from include.cli.interrupt import ends_as_by_ctrl_c, ends_at_once
from include.cli.options import DEFAULT_ROOT, Root, runs_of
from include.model.errors import command

Spec = Annotated[
    Path, typer.Argument(help="The experiment: a YAML file, or the name of one that comes along.")
]


def check(spec: Spec) -> None:
    """List every problem of a spec, or the runs that it stands for."""
    from include.experiment.levels import trace_notes
    from include.experiment.problems import notes_of
    from include.experiment.size import size_of

    points = runs_of(spec)
    for point in points:
        windows = f"{point.windows} window{'s' * (point.windows != 1)}"
        name = f", calibration {Path(point.calibration).name}" if point.calibration else ""
        typer.echo(f"{point.run_id}  {point.duration_min:g} min, {windows}{name}")
    typer.echo(size_of(points))
    for note in dict.fromkeys(note for point in points for note in trace_notes(point)):
        typer.echo(f"trace: {note}")
    for note in dict.fromkeys(note for point in points for note in notes_of(point)):
        typer.echo(f"ignored: {note}")


def run(
    spec: Spec,
    root: Root = DEFAULT_ROOT,
    fresh: Annotated[bool, typer.Option(help="Measure stored runs again.")] = False,
    on: Annotated[
        str,
        typer.Option(help="Spark master that distributes the runs, such as spark://HOST:7077."),
    ] = "",
    side_by_side: Annotated[
        int,
        typer.Option(min=1, help="Real-time runs to measure at a time."),
    ] = 1,
) -> None:
    """Measure the runs of a spec; complete ones are reused.

    With --on each run is a task of Spark, and EXPERIMENT/sweep_status.csv says how each went.
    """
    from include.cli.progress import Progress
    from include.experiment.size import size_of
    from include.runs.batch import require_complete, run_batch
    from include.runs.stages import forget
    from include.runs.stored import mark_asked
    from include.testbeds import TESTBEDS

    # Nothing starts before every point is known to be right.
    points = runs_of(spec)
    if (size := size_of(points)).is_large:
        typer.echo(size)
    if on:
        from include.runs.spark.session import require_master
        from include.runs.spark.sweep import require_virtual, sweep

        require_master(on)
        require_virtual(points)
    real_time = any(TESTBEDS[point.testbed].real_time for point in points)
    if real_time:
        ends_as_by_ctrl_c()
    else:
        again = command("run", spec, *(() if root == DEFAULT_ROOT else ("--root", root)))
        ends_at_once(f"Interrupted. What is complete is kept; {again} goes on.")
    for point in points if fresh else ():
        forget(point, root)
    folder = root / points[0].experiment
    mark_asked(folder, (point.run_id for point in points))
    if on:
        results = sweep(points, root, master=on, say=typer.echo)
    else:
        progress = Progress(len(points))
        with progress.told_by_the_clock() if real_time else nullcontext():
            results = run_batch(
                points,
                root,
                side_by_side=side_by_side,
                report=progress.finished,
                window=progress.window,
            )
    require_complete(results)
    typer.echo(f"\nMeasurements: {folder}\nTables and page: {command('report', folder)}")
