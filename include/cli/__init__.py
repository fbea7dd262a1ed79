"""The command line: `tidebench run SPEC.yaml`, and the same code as the DAGs.

`python -m include.cli` is the same where the package is not installed.
"""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from include.cli import (
    act,
    advise,
    bound,
    fidelity,
    papers,
    prices,
    results,
    run,
    service,
    testbeds,
)  # fmt: skip
from include.cli.options import NoEmptyPaths, find_modules_in
from include.model.errors import TidebenchError

# Looking for plug-ins that nobody has takes pydantic longer than checking a spec.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")

EXAMPLES = """\
**Examples**

- `tidebench run mine.yaml && tidebench report var/mine`
- `tidebench record http://localhost:8081 --job orders --out job`
- `tidebench advise job --objective "latency p95 < 2 s"`
- `tidebench paper henge`
"""

COMMANDS = {
    "Experiments": (
        run.check, run.run, results.report, results.figure, bound.bound,
        results.columns, results.remove, results.copy, results.crate,
    ),
    "A running job": (
        service.record, service.shadow, service.verdict,
        act.act, act.pause, act.resume, act.journal, act.keda,
    ),
    "A recorded job": (
        advise.advise, advise.backtest, advise.backtest_errors, advise.operators, prices.prices,
    ),
    "Papers": (papers.reproduce, papers.paper, papers.calibrate, papers.conform),
    "Real testbeds": (testbeds.metrics, testbeds.reap, fidelity.fidelity, fidelity.fit_flink),
}  # fmt: skip
"""Every command, by the heading that `tidebench --help` lists it under."""

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")
for _heading, _functions in COMMANDS.items():
    for _function in _functions:
        app.command(cls=NoEmptyPaths, rich_help_panel=_heading)(_function)


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"tidebench {version('tidebench')}")
        except PackageNotFoundError:
            typer.echo("tidebench, not installed as a package: make setup does that")
        raise typer.Exit


@app.callback(epilog=EXAMPLES)
def tidebench(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Show it.")
    ] = False,
) -> None:
    """Compare autoscalers of stream processing: on a simulator, on a recording, on a real job."""


def main() -> None:
    """Run the command line; an error of ours is its message and exit code 1."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error
    try:
        find_modules_in(Path.cwd())  # as for python -m
    except FileNotFoundError:
        raise SystemExit("error: the folder that this is called in is gone; change it") from None
    try:
        app()
    except TidebenchError as error:
        typer.secho(f"error: {error}", err=True, fg=typer.colors.RED if _colour() else None)
        raise SystemExit(1) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise SystemExit(f"error: {error.filename!s:.60}... is too long for a path") from None
        if error.errno == errno.ENOSPC and error.filename is None:  # where this writes to a file
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left of it, at the end
            raise SystemExit("error: the disk that this writes its lines to is full") from None
        raise


def _colour() -> bool:
    return "NO_COLOR" not in os.environ
