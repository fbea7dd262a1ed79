"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
