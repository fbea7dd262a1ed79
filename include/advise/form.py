"""The trigger forms of the DAGs `advise` and `shadow_report`, and what a filled-in form asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from include.advise.request import AdviceRequest
from include.experiment.form import Section, form_of
from include.experiment.form_lines import entries_of
from include.experiment.spec import NAMED
from include.model.errors import SpecError, all_checked, unknown_name

if TYPE_CHECKING:
    from include.advise.case import ReadRequest

FOLDER = "advice-"
"""What the name of an advice begins with as a folder beside those of experiments."""
OF_ADVICE = ("objective", "prices", "seeds")
"""What is asked as in the form of an advice."""


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
    """The values of a form, without those that are left empty. Raises SpecError for unknown fields,
    and if ``folder`` is no name of a folder."""
    values = _values(params, fields)
    problems = [unknown_name("param", name, fields) for name in params if name not in fields]
    if not re.fullmatch(NAMED, values[folder]):
        problems.append(f"{folder}: use small letters, digits, - and _, got {values[folder]!r}")
    if problems:
        raise SpecError("the params", problems)
    return values


def _values(params: Mapping[str, Any], fields: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Texts are text, whatever a program has sent."""
    filled = {name: value for name, value in params.items() if value not in (None, "")}
    return {
        name: str(value) if "string" in field["type"] else value
        for name, field in fields.items()
        if (value := filled.get(name, field["default"])) is not None
    }


def request_from_params(params: Mapping[str, Any]) -> tuple[str, AdviceRequest]:
    """The folder's name and what is asked. Raises SpecError for wrong names of the form itself;
    `read_from_params` looks at everything else."""
    name = filled_in(params, advice_params(), "name")["name"]
    return FOLDER + name, _request(params)


def _request(params: Mapping[str, Any]) -> AdviceRequest:
    values = _values(params, advice_params())
    lines = values.pop("controllers")
    controllers = entries_of(lines if isinstance(lines, list) else [lines])
    del values["name"]
    return AdviceRequest(**values, controllers=tuple(map(str, controllers)))


def read_from_params(params: Mapping[str, Any], root: Path) -> tuple[str, ReadRequest]:
    """The folder's name below ``root``, and the request with all that it names. Raises SpecError
    with what is wrong with the form, and with what it names, at once."""
    from include.advise.case import read_request

    name = FOLDER + _values(params, advice_params())["name"]
    folder = root / (name if re.fullmatch(FOLDER + NAMED, name) else FOLDER)
    _, _, read = all_checked(
        "advise",
        lambda: request_from_params(params),
        lambda: require_free(folder),
        lambda: read_request(_request(params), folder),
    )
    return name, read


def require_free(folder: Path) -> None:
    """Raise SpecError when an experiment has taken the folder of an advice."""
    if (folder / "runs").exists():
        raise SpecError("name", [f"{folder.name} is an experiment here; choose another name"])


def parse_day(text: str) -> date:
    """Of ``2026-01-31``. Raises SpecError."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SpecError("day", [f"write a day such as 2026-01-31, got {text!r}"]) from None


class WhichDay(Section):
    """Which day of which shadow."""

    shadow: str = Field(
        "shadow",
        title="Shadow",
        description="The folder of its --state, below the data root.",
    )
    day: str | None = Field(
        None, title="Day", description="Such as 2026-01-31, in UTC. None: the one before."
    )


def shadow_params() -> dict[str, dict[str, Any]]:
    """The form."""
    asked = advice_params()
    return form_of(WhichDay) | {name: {**asked[name], "section": None} for name in OF_ADVICE}


def day_from_params(params: Mapping[str, Any], today: date) -> tuple[str, date, AdviceRequest]:
    """The folder's name of a shadow, the day, and what is asked of a recording that is not known
    yet. Raises SpecError for wrong names of the form itself, and a day that is none; `keep_case`
    looks at everything else."""
    day = params.get("day") or str(today - timedelta(days=1))
    values, day = all_checked(
        "the params",
        lambda: filled_in(params, shadow_params(), "shadow"),
        lambda: parse_day(str(day)),
    )
    return values["shadow"], day, AdviceRequest(**{name: values[name] for name in OF_ADVICE})
