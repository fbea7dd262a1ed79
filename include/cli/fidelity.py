"""The command `tidebench fidelity`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from include.cli.options import seed_numbers
from include.model.errors import SpecError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"


def fidelity(
    folder: Annotated[
        Path, typer.Argument(help="The folder of an experiment that ran on an engine.")
    ],
    calibration: Annotated[
        list[str], typer.Option(help="Of the simulator; by name or file, more than one if you like.")
    ],
    fitted: Annotated[
        str, typer.Option(help="Seeds that a calibration has been fitted on, with commas.")
    ] = "",
    again: Annotated[
        Path | None, typer.Option(help="The folder of an experiment that measured runs again.")
    ] = None,
    testbed: Annotated[str, typer.Option(help="simulated or flow.")] = "simulated",
    out: Annotated[Path, typer.Option(help="The page; its CSV goes to results/ beside it.")] = PAGE,
    processes: Annotated[int, typer.Option(min=0, help="Worker processes; 0: all CPUs.")] = 0,
) -> None:
    """Simulate runs that an engine has measured, and say how far off the simulator is.

    Runs that are not complete yet are left out; the page says how many there are of how many.
    """
    from include.files.whole import write_bytes
    from include.model.errors import command
    from include.results.tables.covers import stored_runs
    from include.studies.fidelity.comparison import AGAIN, asked_runs, predictions
    from include.studies.fidelity.measure import measured_figures, predicted_figures
    from include.studies.fidelity.page import as_csv, as_markdown

    folder, seeds = folder.resolve(), seed_numbers(fitted) if fitted else []
    runs = stored_runs(folder)
    if simulated := sorted({run.spec.testbed for run in runs} & {"simulated", "flow"}):
        raise SpecError(str(folder), [f"its runs are on {', '.join(simulated)}, which is no engine"])
    typer.echo(f"{len(runs)} runs are complete; building their tables ...")
    measured = measured_figures(runs, folder.parent)
    rows = []
    for name in calibration:
        typer.echo(f"simulating them with {name} ...")
        predicted = predicted_figures(runs, folder.parent, testbed, name, processes or None)
        label = Path(name).stem if testbed == "simulated" else f"{Path(name).stem} on {testbed}"
        rows += predictions(label, measured, predicted, seeds)
    if again is not None:
        twice = measured_figures(stored_runs(again.resolve()), again.resolve().parent)
        rows += predictions(AGAIN, measured, twice, seeds)
    csv = out.with_name("results") / "fidelity.csv"
    asked = Counter(asked_runs(folder.name, measured))
    options = [part for name in calibration for part in ("--calibration", name)]
    made_by = command("fidelity", folder.name, *options, *(["--fitted", fitted] if fitted else []))
    write_bytes(out, as_markdown(rows, asked, made_by, f"results/{csv.name}").encode())
    write_bytes(csv, as_csv(rows).encode())
    typer.echo(f"Page: {out}\nEvery figure: {csv}")
