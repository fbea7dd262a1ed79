"""The command line: `tidebench run SPEC.yaml`, and the same code as the DAGs.

`python -m include.cli` is the same where the package is not installed.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from include.cli import advise as advise_console
from include.cli.bound import bound
from include.cli.interrupt import ends_at_once
from include.cli.metrics import metrics
from include.model.errors import SpecError, TidebenchError, command
from include.studies import ALIASES, STUDIES

if TYPE_CHECKING:
    from include.studies.base import Study
    from include.studies.results import StudyResults

# Looking for plug-ins that nobody has takes pydantic longer than checking a spec.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")

app = typer.Typer(
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
Database = Annotated[
    str, typer.Option(envvar="TIDEBENCH_DATABASE", help="Results database; SQLite by default.")
]
DEFAULT_ROOT = Path(__file__).resolve().parents[2] / "var"


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"tidebench {version('tidebench')}")
        except PackageNotFoundError:
            typer.echo("tidebench, not installed as a package: make setup does that")
        raise typer.Exit


app.command()(advise_console.advise)
app.command()(advise_console.backtest)
app.command()(advise_console.operators)
app.command()(bound)
app.command()(metrics)


@app.callback()
def tidebench(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Say which.")
    ] = False,
) -> None:
    """Experiments on elastic stream processing, without Airflow."""


@app.command()
def run(
    spec: Annotated[Path, typer.Argument(help="The experiment, a YAML file.")],
    root: Root = DEFAULT_ROOT,
    fresh: Annotated[bool, typer.Option(help="Measure again what is stored already.")] = False,
) -> None:
    """Measure every run of an experiment on its testbed. Complete runs are reused."""
    from include.cli.progress import Progress
    from include.experiment.matrix import runs_in_file
    from include.experiment.size import size_of
    from include.runs.batch import require_complete, run_batch
    from include.runs.stages import forget, look, run_all, run_alone, store_of
    from include.testbeds import TESTBEDS

    points = runs_in_file(spec)  # nothing starts before every point is known to be right
    if (size := size_of(points)).is_large:
        typer.echo(size)
    if not any(TESTBEDS[point.testbed].real_time for point in points):  # those give back first
        again = command("run", spec, *(() if root == DEFAULT_ROOT else ("--root", root)))
        ends_at_once(f"Interrupted. What is complete is kept; {again} goes on.")
    for point in points if fresh else ():
        with run_alone(point, root):
            forget(point, root)
    progress = Progress(len(points))
    if len(points) == 1:
        if (found := look(points[0], root)) is found.DAMAGED:
            damage = store_of(points[0], root).damage(points[0].windows)
            typer.echo(f"{points[0].run_id} is {found}: {damage}")
        progress.begin(points[0])
        progress.end(points[0], run_all(points[0], root, progress.window))
    else:
        require_complete(run_batch(points, root, report=progress.finished))
    folder = root / points[0].experiment
    typer.echo(f"\nMeasurements: {folder}\nTables and page: {command('report', folder)}")


@app.command()
def report(
    folder: Annotated[
        str, typer.Argument(help="The folder of an experiment, or a URI such as s3://bucket/mine.")
    ],
    database: Database = "",
    master: Annotated[
        str, typer.Option(envvar="TIDEBENCH_SPARK_MASTER", help="Spark master.")
    ] = "local[*]",
) -> None:
    """Build the tables of an experiment with Spark, validate and publish them.

    Ends with exit code 1, after publishing the others, when runs were left out. What lies elsewhere
    is fetched, and what was made of it is sent back.
    """
    from include.results.quality.gates import check_tables
    from include.results.reports.summary import summary
    from include.results.tables.build import build_tables
    from include.results.tables.quarantine import require_none_left_out
    from include.runs.measurements.elsewhere import at_hand, is_elsewhere, shown
    from include.runs.measurements.locks import REPORT, alone, locked
    from include.studies import printed
    from include.studies.publish import publish_experiment

    again = command("report", folder)
    ends_at_once(f"Interrupted. What was published before stands; {again} begins again.")
    with at_hand(folder) as here, alone(here, REPORT) if here.is_dir() else nullcontext():
        if under_way := [name for name in locked(here) if name != REPORT]:
            names = ", ".join(under_way)
            typer.echo(f"not in this report, because they are being measured: {names}")
        root = DEFAULT_ROOT if is_elsewhere(folder) else here.parent
        typer.echo("building tables ...")
        build_tables(here, here.name, master=master)
        typer.echo("validating ...")
        check_tables(here, here.name)
        typer.echo("publishing ...")
        publish_experiment(here, database or f"sqlite:///{root / 'results.db'}")
        told = summary(here, printed)
        typer.echo(told.replace(str(here), shown(folder)) if is_elsewhere(folder) else told)
        require_none_left_out(here)


@app.command()
def copy(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment.")],
    to: Annotated[str, typer.Argument(help="Where to, a URI such as s3://bucket/mine.")],
) -> None:
    """Copy an experiment to wherever pyarrow reaches: S3, Google Cloud Storage, Azure, HDFS."""
    from include.runs.measurements.elsewhere import copy, shown

    typer.echo(f"{copy(folder.resolve(), to)} files: {shown(to)}")


@app.command()
def remove(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment.")],
    runs: Annotated[list[str], typer.Argument(help="Runs of it.")],
    database: Database = "",
    even_if_taken: Annotated[
        bool, typer.Option(help="Also interrupted runs that a DAG run has begun and left.")
    ] = False,
) -> None:
    """Remove runs for good: what was measured of them and their rows in the results database."""
    from include.results.reports.removal import remove_runs

    folder = folder.resolve()
    url = database or f"sqlite:///{folder.parent / 'results.db'}"
    for sentence in remove_runs(folder, runs, url, even_if_taken=even_if_taken):
        typer.echo(sentence)
    typer.echo(f"Tables and page: {command('report', folder)}")


@app.command()
def crate(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment, with its report.")],
    out: Annotated[Path, typer.Option(help="The ZIP file to write.")],
    license_: Annotated[
        str, typer.Option("--license", help="URL of the licence of these results.")
    ] = "",
    overwrite: Annotated[bool, typer.Option(help="Replace the file where there is one.")] = False,
) -> None:
    """Pack a published experiment as a Workflow Run RO-Crate, for an archive that keeps it."""
    from include.results.reports.crate import pack_crate

    files = pack_crate(folder.resolve(), out, license_, overwrite=overwrite)
    typer.echo(f"Crate: {out}, {files} files")


@app.command()
def figure(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment, with its report.")],
    out: Annotated[Path, typer.Option(help="The SVG file to write.")],
    front: Annotated[
        bool, typer.Option(help="One point per controller, its variants joined by a line.")
    ] = False,
    fitted: Annotated[
        str, typer.Option(help="Patterns that options were chosen on, separated by commas.")
    ] = "",
) -> None:
    """Draw cost against compliance or utility of every controller on every workload."""
    from include.results.reports.image import write_front, write_image

    if front:
        write_front(
            folder.resolve(), out, [one.strip() for one in fitted.split(",") if one.strip()]
        )
    else:
        write_image(folder.resolve(), out)
    typer.echo(f"Figure: {out}")


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="The experiment, a YAML file.")],
    root: Root = DEFAULT_ROOT,
    master: Annotated[
        str, typer.Option(envvar="TIDEBENCH_SPARK_MASTER", help="Spark master.")
    ] = "local[*]",
) -> None:
    """Measure every point of an experiment as a Spark task. Complete points are reused."""
    from include.experiment.matrix import runs_in_file
    from include.runs.spark.sweep import sweep as sweep_points

    rows = sweep_points(runs_in_file(spec), root, master=master, say=typer.echo)
    if any(row.outcome == "failed" for row in rows):
        raise typer.Exit(1)


@app.command()
def check(spec: Annotated[Path, typer.Argument(help="The experiment, a YAML file.")]) -> None:
    """Say everything that is wrong with an experiment, or what it would run."""
    from include.experiment.levels import trace_notes
    from include.experiment.matrix import runs_in_file
    from include.experiment.size import size_of

    points = runs_in_file(spec)
    for point in points:
        typer.echo(f"{point.run_id}  {point.duration_min:g} min, {point.windows} windows")
    typer.echo(size_of(points))
    for note in dict.fromkeys(note for point in points for note in trace_notes(point)):
        typer.echo(f"trace: {note}")


@app.command()
def prices(
    provider: Annotated[str, typer.Argument(help="aws, azure or gce.")],
    region: Annotated[str, typer.Option(help="As the provider calls it, such as eu-central-1.")],
    like: Annotated[str, typer.Option(help="Types with at least so much.")] = "4cpu-16gb",
    type_: Annotated[str, typer.Option("--type", help="This type, whatever its size.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write a price book of the first one.")] = None,
) -> None:
    """List what hosts cost on demand, the cheapest first, from the data of apache-libcloud."""
    from include.cli.prices import shown

    for line in shown(provider, region, like, type_, out):
        typer.echo(line)


@app.command()
def reap(
    remove: Annotated[bool, typer.Option(help="Give back instead of listing.")] = False,
    after_s: Annotated[
        float, typer.Option(min=0, help="A run that nobody looked after for so long is dead.")
    ] = 600,
    testbed: Annotated[str, typer.Option(help="Of this testbed only.")] = "",
) -> None:
    """List what runs hold on testbeds that lease, and give back what dead ones have left."""
    from include.model.errors import unknown_name
    from include.testbeds import TESTBEDS
    from include.testbeds.reap import reap as reap_testbeds

    if testbed and testbed not in TESTBEDS:
        raise SpecError("--testbed", [unknown_name("testbed", testbed, TESTBEDS)])
    chosen = [testbed] if testbed else list(TESTBEDS)
    dead = reap_testbeds(remove=remove, after_s=after_s, testbeds=chosen, say=typer.echo)
    if dead and not remove:
        typer.echo(f"{dead} dead; --remove gives back what they hold")


@app.command()
def reproduce(
    root: Root = DEFAULT_ROOT,
    processes: Annotated[int, typer.Option(min=0, help="Worker processes; 0: all CPUs.")] = 0,
    seeds: Annotated[str, typer.Option(help="Separated by commas; else those of its specs.")] = "",
    set_baseline: Annotated[
        bool, typer.Option(help="Hold the next reproductions against this one.")
    ] = False,
    strict: Annotated[
        bool, typer.Option(help="Fail when an error is above its limit, or runs were left out.")
    ] = False,
    database: Database = "",
) -> None:
    """Repeat the evaluation of PeerJ CS 141 and hold it against the published figures."""
    from include.results.tables.quarantine import require_none_left_out
    from include.studies import study_named
    from include.studies.nights import keep_as_baseline

    study, chosen = study_named("peerj141"), _numbers(seeds) if seeds else None
    results = _conduct(study, root, processes, chosen, database)
    if set_baseline:
        folder = root.resolve() / study.experiment
        typer.echo(f"Baseline: {keep_as_baseline(results, study.runs(chosen), folder)}")
    if strict:
        study.require_reproduced(results)
        require_none_left_out(root.resolve() / study.experiment)


@app.command()
def paper(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join((*STUDIES, *ALIASES))}.")],
    root: Root = DEFAULT_ROOT,
    processes: Annotated[int, typer.Option(min=0, help="Worker processes; 0: all CPUs.")] = 0,
    seeds: Annotated[str, typer.Option(help="Separated by commas; else those of its specs.")] = "",
    database: Database = "",
) -> None:
    """Repeat the evaluation of a paper and hold its claims against what is measured.

    Ends with exit code 1, after publishing the others, when runs were left out.
    """
    from include.results.tables.quarantine import require_none_left_out
    from include.studies import study_named

    study = study_named(name)
    _conduct(study, root, processes, _numbers(seeds) if seeds else None, database)
    require_none_left_out(root.resolve() / study.experiment)


def _conduct(
    study: Study, root: Path, processes: int, seeds: list[int] | None, database: str
) -> StudyResults:
    """Take a study to its page, and say what came out."""
    from include.cli.progress import Progress
    from include.results.tables.quarantine import read_quarantine, sentences
    from include.studies.conduct import conclude, measure

    root = root.resolve()
    progress = Progress(len(study.runs(seeds)))
    runs = measure(study, root, seeds=seeds, processes=processes or None, report=progress.finished)
    results = conclude(study, root, runs, database, typer.echo)
    typer.echo(f"{study.title}\n{study.summary(results)}")
    for sentence in sentences(read_quarantine(root / study.experiment)):
        typer.echo(sentence)
    typer.echo(f"Page: {root / study.experiment / 'published' / 'report.html'}")
    return results


def _numbers(text: str) -> list[int]:
    from pydantic import TypeAdapter, ValidationError

    from include.experiment.spec import Seeds
    from include.workloads.topologies import complaint

    try:
        return list(dict.fromkeys(TypeAdapter(Seeds).validate_python(text)))
    except ValidationError as error:
        problems = [complaint(one, "seeds") for one in error.errors(include_url=False)]
        raise SpecError("--seeds", problems) from None


@app.command()
def calibrate(
    out: Annotated[Path, typer.Option(help="The calibration file to write.")],
    evaluations: Annotated[int, typer.Option(min=42, help="Parameter sets to try.")] = 96,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds to take part.")] = 12,
    processes: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
) -> None:
    """Fit the simulator to stepwise and random walk 1, and report on the held-out patterns."""
    from concurrent.futures import ProcessPoolExecutor

    from include.files.whole import write_bytes
    from include.studies.peerj141 import calibration
    from include.studies.peerj141.search import search

    with ProcessPoolExecutor(processes) as pool:
        best = search(evaluations=evaluations, seeds=seeds, pool=pool, report=_calibration_line)
        typer.echo("\nbest: " + ", ".join(f"{name} {value:g}" for name, value in best.items()))
        for patterns in (calibration.FITTED, calibration.HELD_OUT):
            own, others = (
                calibration.evaluate(
                    best, calibration.specs(patterns, calibration.LIMITS, of), pool
                )
                for of in (range(1, seeds + 1), range(seeds + 1, 2 * seeds + 1))
            )
            if patterns is calibration.FITTED:
                write_bytes(out, calibration.as_yaml(best, own, others, seeds).encode())
            typer.echo(f"\non {' and '.join(patterns)}, seeds that took part and others:")
            for name, errors in (*own.items(), *others.items()):
                typer.echo(f"  {name:<12} {errors}" if errors.cells else f"  {name:<12} no figures")
    typer.echo(f"\nwritten to {out}; name it in a spec (calibration: {out})")


def _calibration_line(turn: int, values: Any) -> None:
    typer.echo(f"{turn:>3}  " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))


def main() -> None:
    """Run the command line; an error of ours is its message and exit code 1."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # a controller of one's own, as for python -m
    try:
        app()
    except TidebenchError as error:
        typer.secho(f"error: {error}", err=True, fg=typer.colors.RED if _colour() else None)
        raise SystemExit(1) from None


def _colour() -> bool:
    return "NO_COLOR" not in os.environ
