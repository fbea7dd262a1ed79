"""The trigger form of the DAG `advise`, and the request that a filled-in form makes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from include.advise.request import PLATFORMS, SUITABLE, AdviceRequest
from include.experiment.form import Section, form_of
from include.experiment.form_lines import entries_of
from include.experiment.prices import PRICE_BOOKS
from include.experiment.spec import NAMED
from include.model.errors import SpecError, unknown_name

FOLDER = "advice-"
"""What the name of an advice begins with as a folder beside those of experiments."""


OBJECTIVE = Field(
    "latency p95 < 2 s",
    title="Objective",
    description="A latency, or a share as in 95 % within 2 s.",
)
PRICES = Field(
    "per_second",
    title="Prices",
    description=f"The path of a price book, or one of {', '.join(PRICE_BOOKS)}.",
)


class WhatIsAsked(Section):
    """What an advice is about."""

    name: str = Field(
        "job",
        title="Name",
        description="What comes of it is kept under advice- and this name.",
    )
    recording: str = Field(
        "",
        title="Recording",
        description="Path of a CSV, Parquet or OpenMetrics file, of the JSON of a range query, or "
        "a Prometheus server as prometheus+http://...; docs/recordings.md says what it needs.",
    )
    objective: str = OBJECTIVE
    prices: str = PRICES
    columns: str | None = Field(
        None,
        title="Columns",
        description="Which column is what, as in time=timestamp,rate=n@per_min; none is needed "
        "where names say it.",
    )
    edges: str | None = Field(
        None,
        title="Edges",
        description="How records flow between the operators that the recording has, as in "
        "source>map>sink. None: as a folder of record says; else the job is taken as a whole.",
    )


def _seconds(title: str, told_by: str) -> Any:
    description = f"None: what the recording tells, where it has {told_by}."
    return Field(None, title=title, description=description)


class FineTuning(Section):
    """What an advice needs no answer for."""

    headed = "Fine tuning"

    controllers: list[str] = Field(
        [],
        title="Controllers",
        description="Those to try; none means all of them.",
        examples=list(SUITABLE),
    )
    max_instances: int = Field(
        0, title="Most instances", description="0: the most that were recorded."
    )
    per_host: int | None = Field(
        None,
        title="Instances on a host",
        description="How many share the host that is paid. None: as recorded, else 1.",
    )
    start_up_s: float | None = _seconds("Start of an instance, s", "desired instances")
    restart_s: float | None = _seconds("Restart by a scaling, s", "five scalings and more")
    seeds: int = Field(3, title="Seeds", description="How many replays each policy has.")
    sort: bool = Field(
        False, title="Sort rows", description="Sort the recording by time, repeated rows as one."
    )
    recorded: str | None = Field(
        None,
        title="Recorded under",
        description="What scaled the job, as the ranking names it or with options: "
        "hpa, CPU 35 % or hpa target_cpu=0.4.",
    )
    errors: str | None = Field(
        None,
        title="Backtest errors",
        description="The path of a table that backtest-errors wrote. None: that of Tidebench.",
    )
    platform: str | None = Field(
        None,
        title="Platform",
        description=f"What to paste is for: {', '.join(PLATFORMS)}. None: by recording and prices.",
    )


def advice_params() -> dict[str, dict[str, Any]]:
    """The form of an advice."""
    return form_of(WhatIsAsked, FineTuning)


def filled_in(
    params: Mapping[str, Any],
    fields: Mapping[str, Mapping[str, Any]],
    texts: Iterable[str],
    folder: str,
) -> tuple[dict[str, Any], list[str]]:
    """The values of a form and its problems: ``texts`` have to be text, ``folder`` a name."""
    problems = [unknown_name("param", name, fields) for name in params if name not in fields]
    values = {name: params.get(name, field["default"]) for name, field in fields.items()}
    problems += [
        f"{name} must be text, got {values[name]!r}"
        for name in texts
        if not isinstance(values[name] or "", str)
    ]
    if isinstance(values[folder], str) and not re.fullmatch(NAMED, values[folder]):
        problems.append(f"{folder}: use small letters, digits, - and _, got {values[folder]!r}")
    return values, problems


def request_from_params(params: Mapping[str, Any]) -> tuple[str, AdviceRequest]:
    """The folder's name and what is asked. Raises SpecError for what the form itself has wrong;
    `keep_case` looks at everything else."""
    fields = advice_params()
    texts = (*WhatIsAsked.model_fields, "recorded", "platform", "errors")
    values, problems = filled_in(params, fields, texts, "name")
    controllers = entries_of(values["controllers"] or [])
    if not isinstance(controllers, list) or not all(isinstance(one, str) for one in controllers):
        problems.append(f"controllers must be names, got {controllers!r}")
    if not isinstance(values["sort"], bool):
        problems.append(f"sort must be true or false, got {values['sort']!r}")
    if not values["recording"]:
        problems.append("recording: write the path of a recording")
    if problems:
        raise SpecError("the params", problems)
    values |= {name: values[name] or fields[name]["default"] or "" for name in texts}
    name = values.pop("name")
    return FOLDER + name, AdviceRequest(**{**values, "controllers": tuple(controllers)})


def require_free(folder: Path) -> None:
    """Raise SpecError when an experiment has taken the folder of an advice."""
    if (folder / "runs").exists():
        raise SpecError("name", [f"{folder.name} is an experiment here; choose another name"])
