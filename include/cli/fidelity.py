"""The commands `tidebench fidelity` and `tidebench fit-flink`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from include.cli.options import Processes
from include.model.errors import SpecError

if TYPE_CHECKING:
    from include.experiment.run import Run
    from include.studies.fidelity.comparison import Prediction

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"


Folder = Annotated[Path, typer.Argument(help="The folder of an experiment on Flink.")]


def fidelity(  # noqa: PLR0913  options of a command
    folder: Folder,
    calibration: Annotated[
        list[str],
        typer.Option(help="Calibration of the simulator, a name or a file; may be repeated."),
    ],
    fitted: Annotated[
        str, typer.Option(help="Seeds or runs that a calibration has seen, with commas.")
    ] = "",
    again: Annotated[
        Path | None, typer.Option(help="The folder of an experiment that measured runs again.")
    ] = None,
    testbed: Annotated[str, typer.Option(help="simulated or flow.")] = "simulated",
    add: Annotated[
        bool, typer.Option(help="Keep what the page has of runs that are not in the folder.")
    ] = False,
    stored: Annotated[
        bool, typer.Option(help="Predict anew what the page has; the runs may be gone.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The page; its CSV files go to results/.")] = PAGE,
    processes: Processes = 0,
) -> None:
    """Compare the simulator with runs that were measured on Flink.

    Incomplete runs are left out, and runs that lost a host without being asked to; the page names
    them.
    """
    from include.files.whole import require_writable, write_bytes
    from include.model.errors import command
    from include.studies.fidelity.comparison import (
        AGAIN,
        FITTED,
        asked_runs,
        case_of,
        measured_in,
        predictions,
    )
    from include.studies.fidelity.measure import measured_figures, predicted_figures
    from include.studies.fidelity.page import FidelityPage, stored_predictions, stored_unsound

    labels = [Path(name).stem for name in calibration]
    problems = [] if len(set(labels)) == len(labels) else ["two calibrations have one name"]
    if stored and (fitted or again is not None):
        problems.append("--stored keeps what is fitted and measured again; leave those options out")
    if problems:
        raise SpecError("fidelity", problems)
    require_writable(out)
    folder, csv = folder.resolve(), out.with_name("results") / "fidelity.csv"
    unsound_csv = csv.with_name("fidelity_unsound.csv")
    before, unsound = stored_predictions(csv), stored_unsound(unsound_csv)
    runs_again = _runs_of(again.resolve())[0] if again is not None else []
    runs, left_out = (_runs_named_in(before, folder.name), []) if stored else _runs_of(folder)
    every = [*runs, *(run for run, _ in left_out)]
    on_page = {str(row.seed) for row in before if add}
    fitted_to = {case_of(run.spec) for run in _named(every, fitted, on_page)}
    typer.echo(f"{len(runs)} runs count, {len(left_out)} do not; building tables ...")
    measured = measured_in(before) if stored else measured_figures(runs, folder.parent)
    rows: list[Prediction] = []
    for name, label in zip(calibration, labels, strict=True):
        by, own = label if testbed == "simulated" else f"{label} on {testbed}", runs
        if stored:
            roles = {row.case: row.role for row in before if row.by == by}
            own = [run for run in runs if case_of(run.spec) in roles]
            fitted_to = {case for case, role in roles.items() if role == FITTED}
            if not own:
                others = ", ".join(sorted({row.by for row in before}))
                raise SpecError("--stored", [f"the page has no runs by {by}, but by {others}"])
        typer.echo(f"simulating {len(own)} with {name} ...")
        predicted = predicted_figures(own, folder.parent, testbed, name, processes or None)
        rows += predictions(by, measured, predicted, fitted_to)
    if again is not None:
        twice = measured_figures(runs_again, again.resolve().parent)
        rows += predictions(AGAIN, measured, twice, fitted_to)
    if stored:
        anew = {(row.by, row.case) for row in rows}
        rows = [row for row in before if (row.by, row.case) not in anew] + rows
    else:
        here = {case_of(run.spec) for run in every}
        counted = {run.spec.run_id for run in runs}
        kept = {run: why for run, why in unsound.items() if add and run not in counted}
        unsound = kept | {run.spec.run_id: why for run, why in left_out}
        rows = [row for row in before if add and row.case not in here] + rows
    options = [part for label in labels for part in ("--calibration", label)]
    options += ["--testbed", testbed] if testbed != "simulated" else []
    options += ["--fitted", fitted] if fitted else []
    options += ["--again", str(Path("var", again.resolve().name))] if again is not None else []
    options += [f"--{name}" for name, on in {"add": add, "stored": stored}.items() if on]
    page = FidelityPage(
        rows=rows,
        asked=asked_runs(folder.name, measured),
        unsound=unsound,
        command=command("fidelity", Path("var") / folder.name, *options),
        csv=f"results/{csv.name}",
    )
    write_bytes(out, page.markdown().encode())
    write_bytes(csv, page.csv_text().encode())
    if unsound or unsound_csv.exists():
        write_bytes(unsound_csv, page.unsound_csv_text().encode())
    typer.echo(f"Page: {out}\nEvery figure: {csv}")


def fit_flink(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of experiments on Flink, of one topology.")
    ],
    out: Annotated[Path, typer.Option(help="The calibration file to write.")],
    fitted: Annotated[
        str, typer.Option(help="Seeds or runs to look at, with commas; all by default.")
    ] = "",
) -> None:
    """Fit the simulator to runs that were measured on Flink.

    The file names the runs that it was fitted to. `tidebench fidelity` with the same --fitted tests
    it on the others.
    """
    from include.files.whole import require_writable, write_bytes
    from include.studies.fidelity.fit import as_yaml, fit

    require_writable(out)
    root = folders[0].resolve().parent
    if elsewhere := [str(each) for each in folders if each.resolve().parent != root]:
        raise SpecError("fit-flink", [f"not beside {folders[0]}: {', '.join(elsewhere)}"])
    counting: list[Run] = []
    for folder in folders:
        runs, unsound = _runs_of(folder.resolve())
        counting += runs
        for run, why in unsound:
            typer.echo(f"not looked at: {run.spec.run_id} ({why})")
    looked_at = _named(counting, fitted) or counting
    text = as_yaml(fit(looked_at, root), looked_at[0].calibration["memory_factor"])
    write_bytes(out.resolve(), text.encode())
    typer.echo(f"{text}\nwritten to {out}; name it in a spec (calibration: {out})")


def _runs_named_in(rows: list[Prediction], experiment: str) -> list[Run]:
    """The runs of the spec of that name that have rows. Raises SpecError without any."""
    from include.experiment.run import resolve
    from include.experiment.spec import SPECS, load_spec
    from include.studies.fidelity.comparison import case_of

    path, cases = SPECS / f"{experiment}.yaml", {row.case for row in rows}
    points = load_spec(path).points() if path.is_file() else ()
    runs = [resolve(point) for point in points if case_of(point) in cases]
    if not runs:
        raise SpecError(experiment, ["the page has no run of a spec of this name that comes along"])
    return runs


def _named(runs: list[Run], seeds_or_runs: str, others: Collection[str] = ()) -> list[Run]:
    """The runs of these seeds or names. Raises SpecError for what is neither, nor one of others."""
    named = {name.strip() for name in seeds_or_runs.split(",")} - {""}
    names = {run.spec.run_id: {run.spec.run_id, str(run.spec.seed)} for run in runs}
    if unknown := sorted(named.difference(others, *names.values())):
        named_so = "is neither the seed nor the name of a run there"
        raise SpecError("--fitted", [f"{name} {named_so}" for name in unknown])
    return [run for run in runs if named & names[run.spec.run_id]]


def _runs_of(folder: Path) -> tuple[list[Run], list[tuple[Run, str]]]:
    """The complete runs that count, and the others with why not. Raises SpecError without any."""
    from include.results.tables.covers import stored_runs
    from include.studies.fidelity.measure import why_unsound

    runs, unsound = [], []
    for run in stored_runs(folder):
        if run.spec.testbed in ("simulated", "flow"):
            problem = f"run {run.spec.run_id} was simulated; give runs measured with testbed: flink"
            raise SpecError(str(folder), [problem])
        if why := why_unsound(run, folder.parent):
            unsound.append((run, why))
        else:
            runs.append(run)
    if not runs:
        raise SpecError(
            str(folder), [f"no run counts: {run.spec.run_id}, {why}" for run, why in unsound]
        )
    return runs, unsound
