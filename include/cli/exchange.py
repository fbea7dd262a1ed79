"""The commands `tidebench results export`, `import` and `compare`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from include.model.errors import SpecError, TidebenchError

if TYPE_CHECKING:
    from include.results.registry.compare import Comparable, SourcedRow
    from include.results.registry.form import SharedResults

results = typer.Typer(no_args_is_help=True, help="Exchange published rows, and compare them.")
DEFAULT_ROOT = Path(__file__).resolve().parents[2] / "var"
Root = Annotated[
    Path,
    typer.Option("--root", envvar="TIDEBENCH_DATA_ROOT", help="Where results are kept."),
]
COLUMNS = (
    ("strict_near_real_time_compliance", "near real-time %", 1),
    ("strict_relaxed_compliance", "relaxed %", 1),
    ("strict_relaxed_total_cost", "total cost", 2),
    ("resource_cost", "hosts", 2),
    ("age_p95_ms", "age p95 ms", 0),
)


@results.command("export")
def export_command(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment, with its report.")],
    out: Annotated[Path, typer.Option(help="The JSON file to write.")],
    by: Annotated[str, typer.Option(help="Who measured, for readers.")] = "",
) -> None:
    """Write the rows of a published experiment, with where they come from, as one file."""
    from include.files.whole import write_bytes
    from include.results.registry.export import export_results
    from include.results.registry.form import parse_results
    from include.results.reports.unchanged import require_outside

    found = export_results(folder.resolve(), by)
    require_outside(out, folder)
    write_bytes(out, parse_results(found.to_json(), str(out)).to_json().encode())
    typer.echo(f"{len(found.rows)} rows of {found.experiment}: {out}")


@results.command("import")
def import_command(
    files: Annotated[list[Path], typer.Argument(help="Files that others have exported.")],
    root: Root = DEFAULT_ROOT,
) -> None:
    """Keep results of others. Nothing is kept when one of the files is wrong."""
    from include.results.registry.keep import keep_results, read_results

    for found in _read_all(files, read_results):
        path, is_new = keep_results(found, root)
        state = "kept as" if is_new else "known already, kept as"
        typer.echo(f"{len(found.rows)} rows of {found.experiment}, {state} {path}")


@results.command("compare")
def compare_command(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of published experiments and exported files."),
    ] = None,
    root: Root = DEFAULT_ROOT,
) -> None:
    """Show these rows beside those that are kept, wherever they can be compared."""
    from include.results.registry.compare import compare_results
    from include.results.registry.keep import kept_results

    given = _read_all(sources or [], _read)
    unique = {found.name: found for found in [*given, *kept_results(root)]}
    if not unique:
        raise SpecError(
            "results compare",
            ["there is nothing to compare; name a folder with a report, or import a file first"],
        )
    for group in compare_results(list(unique.values())):
        typer.echo("\n".join(table_of(group)) + "\n")


@results.command("schema")
def schema_command() -> None:
    """Print the JSON schema of an exported file."""
    import json

    from include.results.registry.form import schema

    typer.echo(json.dumps(schema(), indent=1))


def _read(source: Path) -> SharedResults:
    from include.results.registry.export import export_results
    from include.results.registry.keep import read_results

    return export_results(source.resolve()) if source.is_dir() else read_results(source)


def _read_all(
    sources: Sequence[Path], read: Callable[[Path], SharedResults]
) -> list[SharedResults]:
    """All of them, or SpecError with what is wrong with each."""
    found, problems = [], []
    for source in sources:
        try:
            found.append(read(source))
        except TidebenchError as error:
            problems.append(str(error))
    if problems:
        raise SpecError("results", problems)
    return found


def table_of(group: Comparable) -> Iterator[str]:
    """A group as lines: title, head, a line per row, and what keeps other groups apart."""
    yield f"{group.title}, {_runs(group.rows)}"
    heads = ["controller", *(head for _, head, _ in COLUMNS), "code", "from"]
    body = [heads, *([*_cells(one)] for one in group.rows)]
    widths = [max(len(line[k]) for line in body) for k in range(len(heads))]
    left = {0, len(heads) - 2, len(heads) - 1}
    for line in body:
        cells = (
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield f"  {'  '.join(cells).rstrip()}"
    for other, rules in group.apart.items():
        yield f"  not beside {other}: other {', '.join(rules)}"


def _runs(rows: Sequence[SourcedRow]) -> str:
    seeds = {run.seed for run in rows[0].row.runs}
    return f"{len(seeds)} seed" if len(seeds) == 1 else f"{len(seeds)} seeds"


def _cells(one: SourcedRow) -> Iterator[str]:
    row = one.row
    yield f"{row.controller} ({row.variant})" if row.variant else row.controller
    for metric, _, decimals in COLUMNS:
        figure = row.figures.get(metric)
        yield f"{figure.mean:.{decimals}f}" if figure else "-"
    yield row.code_sha256[:8]
    yield one.source
