"""The trigger form of the DAG `advise`, and the request that a filled-in form makes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from include.advise.request import AdviceRequest
from include.experiment.form import Section, form_of
from include.experiment.form_lines import entries_of
from include.experiment.spec import NAMED
from include.model.errors import SpecError, unknown_name

FOLDER = "advice-"
"""What the name of an advice begins with as a folder beside those of experiments."""


class Named(Section):
    """Where an advice is kept."""

    name: str = Field(
        "job",
        title="Name",
        description="What comes of it is kept under advice- and this name.",
    )


def advice_params() -> dict[str, dict[str, Any]]:
    """The form of an advice."""
    params = form_of(Named, AdviceRequest)
    del params["options"]
    return params


def filled_in(
    params: Mapping[str, Any], fields: Mapping[str, Mapping[str, Any]], folder: str
) -> dict[str, Any]:
    """The values of a form, without those that are left empty; texts are text, whatever a program
    has sent. Raises SpecError for unknown fields, and if ``folder`` is no name of a folder."""
    filled = {name: value for name, value in params.items() if value not in (None, "")}
    values = {
        name: str(value) if "string" in field["type"] else value
        for name, field in fields.items()
        if (value := filled.get(name, field["default"])) is not None
    }
    problems = [unknown_name("param", name, fields) for name in params if name not in fields]
    if not re.fullmatch(NAMED, values[folder]):
        problems.append(f"{folder}: use small letters, digits, - and _, got {values[folder]!r}")
    if problems:
        raise SpecError("the params", problems)
    return values


def request_from_params(params: Mapping[str, Any]) -> tuple[str, AdviceRequest]:
    """The folder's name and what is asked. Raises SpecError for wrong names of the form itself;
    `keep_case` looks at everything else."""
    values = filled_in(params, advice_params(), "name")
    name, lines = values.pop("name"), values.pop("controllers")
    controllers = entries_of(lines if isinstance(lines, list) else [lines])
    return FOLDER + name, AdviceRequest(**values, controllers=tuple(map(str, controllers)))


def require_free(folder: Path) -> None:
    """Raise SpecError when an experiment has taken the folder of an advice."""
    if (folder / "runs").exists():
        raise SpecError("name", [f"{folder.name} is an experiment here; choose another name"])
