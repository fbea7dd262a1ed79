"""Options that several commands have."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from include.model.errors import SpecError

if TYPE_CHECKING:
    from include.experiment.spec import RunSpec

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
Processes = Annotated[int, typer.Option(min=0, help="Worker processes; 0: all CPUs.")]
Prices = Annotated[str, typer.Option(help="A price book, by name or file.")]
Objective = Annotated[str, typer.Option(help="Such as 'latency p95 < 2 s'.")]
OBJECTIVE, PRICES = "latency p95 < 2 s", "per_second"
DEFAULT_ROOT = Path(__file__).resolve().parents[2] / "var"


class NoEmptyPaths(TyperCommand):
    """A command that takes no empty argument or path, such as an unset variable in quotes: the
    path would be the current folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = self.make_parser(ctx).parse_args(args=[*args])[0]  # before "" becomes the path "."
        left = super().parse_args(ctx, args)
        for param in self.get_params(ctx):
            name = param.name or ""
            word = words.get(name)
            is_path = param.param_type_name == "argument" or isinstance(ctx.params.get(name), Path)
            if is_path and (word == "" or (isinstance(word, list | tuple) and "" in word)):
                raise SpecError(name, ["it is empty; name what is meant"])
        return left


def results_folder(name: str, help_text: str) -> Any:
    """An option: a folder of this name where results are kept, else in var of where one is."""
    return typer.Option(
        help=help_text,
        default_factory=lambda: Path(os.environ.get("TIDEBENCH_DATA_ROOT") or "var") / name,
        show_default=f"$TIDEBENCH_DATA_ROOT/{name}, or var/{name}",
    )


def find_modules_in(*folders: Path) -> None:
    """Look for controllers of a user's own in these folders, in this order, behind all that is
    installed."""
    for path in [str(folder.resolve()) for folder in folders]:
        if path in sys.path:
            sys.path.remove(path)
        sys.path.append(path)


def runs_of(spec: Path) -> list[RunSpec]:
    """Every run of a spec file, or of one that comes along by its name. The modules of its
    controllers may be beside it, or, if not there, where the command is called."""
    from include.experiment.matrix import runs_in_file

    path = _spec_file(spec)
    find_modules_in(path.parent, Path.cwd())
    return runs_in_file(path)


def _spec_file(spec: Path) -> Path:
    """What `spec_path` finds. Raises SpecError, with what was meant where that is plain."""
    from include.experiment.spec import SPECS, spec_path

    comes_along = {path.name for path in SPECS.glob("*.yaml")}
    here = Path(f"{spec}.yaml")
    if here.name not in comes_along and here.is_file():
        raise SpecError("spec", [f"no spec {spec} comes along; did you mean {here}?"])
    if spec.name in comes_along and not spec.exists():
        raise SpecError("spec", [f"there is no file {spec}; did you mean {spec.stem}?"])
    return spec_path(str(spec))


def existing(folder: Path) -> Path:
    """The folder of an experiment, absolute. Raises SpecError where there is none."""
    if not folder.is_dir():
        how = "check the path; tidebench run says at its end where the measurements are"
        if (DEFAULT_ROOT / folder).is_dir():
            how = f"did you mean {DEFAULT_ROOT / folder}?"
        raise SpecError("FOLDER", [f"there is no folder {folder}; {how}"])
    return folder.resolve()
