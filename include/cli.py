"""The command line: `python -m include.cli run SPEC.yaml`, and the same code as the DAGs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from include.model.errors import TidebenchError

# Looking for plug-ins that nobody has takes pydantic longer than checking a spec.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")

app = typer.Typer(
    help="Experiments on elastic stream processing, without Airflow.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
Root = Annotated[
    Path,
    typer.Option(
        "--root",
        envvar="TIDEBENCH_DATA_ROOT",
        help="Where measurements and results are kept.",
    ),
]
DEFAULT_ROOT = Path(__file__).resolve().parent.parent / "var"


@app.command()
def run(
    spec: Annotated[Path, typer.Argument(help="The experiment, a YAML file.")],
    root: Root = DEFAULT_ROOT,
    fresh: Annotated[bool, typer.Option(help="Measure again what is stored already.")] = False,
) -> None:
    """Measure every run of an experiment on its testbed. Complete runs are reused."""
    from include.control.console import Progress
    from include.control.stages import forget, run_all
    from include.experiment.run import resolve
    from include.experiment.spec import load_spec

    points = list(load_spec(spec).points())
    for point in points:  # nothing starts before every point is known to be right
        resolve(point)
    progress = Progress(len(points))
    for point in points:
        if fresh:
            forget(point, root)
        progress.begin(point)
        progress.end(point, run_all(point, root, progress.window))
    folder = root / points[0].experiment
    typer.echo(f"\nMeasurements: {folder}\nTables and page: python -m include.cli report {folder}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment.")],
    database: Annotated[
        str, typer.Option(envvar="TIDEBENCH_DATABASE", help="Results database; SQLite by default.")
    ] = "",
    master: Annotated[
        str, typer.Option(envvar="TIDEBENCH_SPARK_MASTER", help="Spark master.")
    ] = "local[*]",
) -> None:
    """Build the tables of an experiment with Spark, validate and publish them."""
    from include.quality.gates import check_tables
    from include.reports.console import summary
    from include.reports.publish import publish
    from include.tables.build import build_tables

    folder = folder.resolve()
    typer.echo("building tables ...")
    build_tables(folder, folder.name, master=master)
    typer.echo("validating ...")
    check_tables(folder, folder.name)
    typer.echo("publishing ...")
    publish(folder, folder.name, database or f"sqlite:///{folder.parent / 'results.db'}")
    typer.echo(summary(folder))


@app.command()
def check(spec: Annotated[Path, typer.Argument(help="The experiment, a YAML file.")]) -> None:
    """Say everything that is wrong with an experiment, or what it would run."""
    from include.experiment.run import resolve
    from include.experiment.spec import load_spec

    points = list(load_spec(spec).points())
    for point in points:
        resolve(point)
    for point in points:
        typer.echo(f"{point.run_id}  {point.duration_min:g} min, {point.windows} windows")


def main() -> None:
    """Run the command line; an error of ours is its message and exit code 1."""
    try:
        app()
    except TidebenchError as error:
        typer.secho(f"error: {error}", err=True, fg=typer.colors.RED if _colour() else None)
        raise SystemExit(1) from None


def _colour() -> bool:
    return "NO_COLOR" not in os.environ


if __name__ == "__main__":
    main()
