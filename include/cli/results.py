"""Commands on measured runs: report, columns, figure, crate, copy, remove."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import fill, indent
from typing import Annotated, Any

import typer

from include.cli.interrupt import ends_at_once, scratch_folder
from include.cli.options import DEFAULT_ROOT, Database, existing
from include.model.errors import SpecError, command, unknown_name

WIDTH = 96
"""Characters of a line."""
EndToEnd = Annotated[bool, typer.Option(help="Rank and draw by end-to-end compliance and total.")]


def report(
    folder: Annotated[
        str, typer.Argument(help="The folder of an experiment, or a URI such as s3://bucket/mine.")
    ],
    database: Database = "",
    master: Annotated[
        str, typer.Option(envvar="TIDEBENCH_SPARK_MASTER", help="Spark master.")
    ] = "local[*]",
    end_to_end: EndToEnd = False,
) -> None:
    """Build, check and publish tables and the page of measured runs.

    A run that fails its checks is left out; the others are published and the exit code is 1. An
    experiment at a URI is fetched, and its tables and page are sent back. Of a shadow or a day of
    it, it is the verdict, and an advice is ranked and published again.
    """
    from include.advise.case import is_advice
    from include.cli.advise import publish_again
    from include.cli.service import verdict
    from include.files.whole import make_folder
    from include.results.reports.summary import summary
    from include.results.tables.quarantine import require_none_left_out
    from include.runs.measurements.locks import REPORT, alone, locked
    from include.runs.measurements.remote_store import is_remote, local_copy, without_secrets
    from include.runs.stages import outdated_runs
    from include.service.verdict import day_of
    from include.studies import printed
    from include.studies.publish import conclude

    if shadow := day_of(Path(folder)):
        state, day = shadow
        verdict(state, day=day)
        return
    if is_advice(Path(folder)):
        publish_again(Path(folder))
        return
    if not is_remote(folder):
        existing(Path(folder))
    again = command("report", folder)
    with scratch_folder() as scratch:
        ends_at_once(
            f"Interrupted. What was published before stands; {again} begins again.", scratch
        )
        with local_copy(folder, scratch) as here, alone(here, REPORT):
            if under_way := [name for name in locked(here) if name != REPORT]:
                names = ", ".join(under_way)
                typer.echo(f"not in this report, because they are being measured: {names}")
            for sentence in outdated_runs(here):
                typer.echo(sentence)
            if is_remote(folder) and not database:
                make_folder(DEFAULT_ROOT)
                database = f"sqlite:///{DEFAULT_ROOT / 'results.db'}"
            conclude(here, (), database, say=typer.echo, master=master, end_to_end=end_to_end)
            text = summary(here, printed, end_to_end=end_to_end)
            typer.echo(
                text.replace(str(here), without_secrets(folder)) if is_remote(folder) else text
            )
            require_none_left_out(here)


def columns(
    table: Annotated[str, typer.Argument(help="The table; without one, all are listed.")] = "",
) -> None:
    """Explain the columns of a published table: unit, meaning, formula."""
    from include.results.tables.catalogue import DOCUMENTED, schema_of

    if not table:
        for name in DOCUMENTED:
            typer.echo(f"{name:<18} {schema_of(name).summary.rstrip('.')}")
        return
    if table not in DOCUMENTED:
        raise SpecError("columns", [unknown_name("table", table, DOCUMENTED)])
    schema = schema_of(table)
    typer.echo(f"{fill(schema.description, WIDTH)}\nOne row per {', '.join(schema.key)}.")
    for column in schema.columns:
        typer.echo(f"\n{column.name} [{column.unit}]")
        for text in (column.description, f"= {column.formula}"):
            typer.echo(indent(fill(text, WIDTH - 4), "    "))


def copy(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment.")],
    to: Annotated[str, typer.Argument(help="Target URI, such as s3://bucket/mine.")],
) -> None:
    """Copy an experiment to S3, Google Cloud Storage, Azure or HDFS."""
    from include.runs.measurements.remote_store import copy, without_secrets

    typer.echo(f"{copy(existing(folder), to)} files: {without_secrets(to)}")


def remove(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment.")],
    runs: Annotated[list[str], typer.Argument(help="Runs to remove.")],
    database: Database = "",
    even_if_taken: Annotated[
        bool, typer.Option(help="Also interrupted runs that a DAG run has begun.")
    ] = False,
) -> None:
    """Remove runs: their measurements and their rows in the database."""
    from include.results.reports.removal import remove_runs

    folder = folder.resolve()
    url = database or f"sqlite:///{folder.parent / 'results.db'}"
    for sentence in remove_runs(folder, runs, url, even_if_taken=even_if_taken):
        typer.echo(sentence)
    typer.echo(f"Tables and page: {command('report', folder)}")


def crate(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment, with its report.")],
    out: Annotated[Path, typer.Option(help="The ZIP file to write.")],
    license_: Annotated[
        str, typer.Option("--license", help="URL of the licence of these results.")
    ] = "",
    overwrite: Annotated[bool, typer.Option(help="Replace the file where there is one.")] = False,
) -> None:
    """Pack a published experiment as an RO-Crate, for an archive."""
    from include.results.reports.crate import pack_crate

    if license_ and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", license_):
        url = "https://creativecommons.org/licenses/by/4.0/"
        raise SpecError("--license", [f"give its URL, such as {url}, got {license_!r:.80}"])
    files = pack_crate(existing(folder), out, license_, overwrite=overwrite)
    typer.echo(f"Crate: {out}, {files} files")


def figure(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of experiments, with their reports.")
    ],
    out: Annotated[Path, typer.Option(help="The SVG file to write.")],
    front: Annotated[
        bool, typer.Option(help="One point per controller, its variants joined by a line.")
    ] = False,
    fitted: Annotated[
        str, typer.Option(help="Patterns that options were chosen on, separated by commas.")
    ] = "",
    end_to_end: EndToEnd = False,
) -> None:
    """Draw cost against compliance for every controller and workload."""
    from include.files.whole import write_bytes
    from include.results.reports.figures import front as front_figure
    from include.results.reports.figures import style, tournament
    from include.results.reports.integrity import require_published
    from include.results.reports.tournament import END_TO_END_SHARE, Case, case_of, matches
    from include.results.tables.staged import read_table

    if fitted and not front:
        raise SpecError("--fitted", ["it marks panels of --front; give that, too"])
    published = {folder: require_published(existing(folder)).parent for folder in folders}
    if out.suffix.lower() != ".svg":
        raise SpecError("--out", [f"figures are SVG; let it end in .svg, got {out}"])
    rows, cases = list[dict[str, Any]](), set[Case]()
    for folder, place in published.items():
        own = read_table(place / "tournament.parquet")
        if end_to_end and all(row["metric"] != END_TO_END_SHARE for row in own):
            first = command("report", folder)
            raise SpecError("--end-to-end", [f"no run has end-to-end figures; first: {first}"])
        if twice := cases.intersection(map(case_of, own)):
            drawn = " ".join(map(str, filter(None, min(twice))))
            raise SpecError(
                str(folder), [f"{drawn} is in a folder before it; leave one of them out"]
            )
        rows += own
        cases.update(map(case_of, own))
    if front:
        patterns = [name.strip() for name in fitted.split(",") if name.strip()]
        svg = front_figure.draw(rows, patterns, end_to_end=end_to_end)
    else:
        svg = tournament.draw(matches(rows, end_to_end=end_to_end))
    write_bytes(out, f"{style.standalone(svg)}\n".encode())
    typer.echo(f"Figure: {out}")
