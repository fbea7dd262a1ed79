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


def seed_numbers(text: str) -> list[int]:
    """What ``--seeds`` gives, each once: numbers and ranges. Raises SpecError."""
    from pydantic import TypeAdapter, ValidationError

    from include.experiment.spec import Seeds
    from include.workloads.topologies import complaint

    try:
        return list(dict.fromkeys(TypeAdapter(Seeds).validate_python(text)))
    except ValidationError as error:
        problems = [complaint(problem, "seeds") for problem in error.errors(include_url=False)]
        raise SpecError("--seeds", problems) from None
