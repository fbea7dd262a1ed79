"""The command line: `tidebench run SPEC.yaml`, and the same code as the DAGs.

`python -m include.cli` is the same where the package is not installed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from include.cli import (
    act,
    advise,
    bound,
    conform,
    fidelity,
    metrics,
    papers,
    prices,
    reap,
    results,
    run,
    service,
)  # fmt: skip
from include.model.errors import TidebenchError

# Looking for plug-ins that nobody has takes pydantic longer than checking a spec.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for function in (
    run.check, run.run,
    results.report, bound.bound, results.figure, results.crate, results.copy, results.remove,
    papers.paper, papers.reproduce, papers.calibrate,
    fidelity.fidelity, fidelity.fit_flink,
    advise.advise, advise.backtest, advise.backtest_errors, advise.operators,
    prices.prices, reap.reap, metrics.metrics, conform.conform,
    act.act, act.pause, act.resume, act.journal, act.keda,
    service.record, service.shadow, service.verdict,
):  # fmt: skip
    app.command()(function)


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"tidebench {version('tidebench')}")
        except PackageNotFoundError:
            typer.echo("tidebench, not installed as a package: make setup does that")
        raise typer.Exit


@app.callback()
def tidebench(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Say which.")
    ] = False,
) -> None:
    """Experiments on elastic stream processing, without Airflow."""


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
