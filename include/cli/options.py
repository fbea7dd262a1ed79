"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from include.model.errors import SpecError

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


def existing(folder: Path) -> Path:
    """The folder of an experiment, absolute. Raises SpecError where there is none."""
    if not folder.is_dir():
        how = "check the path; tidebench run says at its end where the measurements are"
        if (DEFAULT_ROOT / folder).is_dir():
            how = f"did you mean {DEFAULT_ROOT / folder}?"
        raise SpecError("FOLDER", [f"there is no folder {folder}; {how}"])
    return folder.resolve()
