"""The trigger form of the DAG `advise`, and the request that a filled-in form makes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from include.advise.request import SUITABLE, AdviceRequest
from include.experiment.form import CHECKED_BY_US
from include.experiment.lines import entries_of
from include.experiment.prices import PRICE_BOOKS
from include.experiment.spec import NAMED
from include.model.errors import SpecError, unknown_name

FOLDER = "advice-"
"""What the name of an advice begins with as a folder beside those of experiments."""
_FINE = "Fine tuning"


def advice_params() -> dict[str, dict[str, Any]]:
    """Per param, the keyword arguments of an Airflow ``Param``: default and JSON schema."""
    return {name: {**field, **CHECKED_BY_US} for name, field in _fields().items()}


def _fields() -> dict[str, dict[str, Any]]:
    return {
        "name": _text("job", "Name", "What comes of it is kept under advice- and this name."),
        "recording": _text(
            "",
            "Recording",
            "Path of a CSV, Parquet or OpenMetrics file, of the JSON of a range query, or a "
            "Prometheus server as prometheus+http://...; docs/recordings.md says what it needs.",
        ),
        "objective": _text(
            "latency p95 < 2 s", "Objective", "A latency, or a share as in 95 % within 2 s."
        ),
        "prices": _text(
            "per_second",
            "Prices",
            f"The path of a price book, or one of {', '.join(PRICE_BOOKS)}.",
        ),
        "columns": _text(
            "",
            "Columns",
            "Which column is what, as in time=timestamp,rate=n@per_min; none is needed where "
            "names say it.",
        ),
        "controllers": {
            "default": [],
            "type": "array",
            "items": {"type": "string"},
            "examples": list(SUITABLE),
            "title": "Controllers",
            "description": "Those to try, one per line; none means all of them: "
            f"{', '.join(SUITABLE)}.",
            "section": _FINE,
        },
        "max_instances": _number(0, "Most instances", "0: the most that were recorded."),
        "per_host": _number(1, "Instances on a host", "How many share the host that is paid."),
        "start_up_s": _seconds("Start of an instance, s", "desired instances"),
        "restart_s": _seconds("Restart by a scaling, s", "five scalings and more"),
        "seeds": _number(3, "Seeds", "How many replays each policy has."),
    }


def _text(default: str, title: str, description: str) -> dict[str, Any]:
    described = {"title": title, "description": description, "section": None}
    return {"default": default, "type": "string", **described}


def _number(default: int, title: str, description: str) -> dict[str, Any]:
    described = {"title": title, "description": description, "section": _FINE}
    return {"default": default, "type": "integer", **described}


def _seconds(title: str, told_by: str) -> dict[str, Any]:
    told = f"None: what the recording tells, where it has {told_by}."
    described = {"title": title, "description": told, "section": _FINE}
    return {"default": None, "type": ["number", "null"], **described}


def request_from_params(params: Mapping[str, Any]) -> tuple[str, AdviceRequest]:
    """The folder's name and what is asked. Raises SpecError for what the form itself has wrong;
    `keep_case` looks at everything else."""
    known = advice_params()
    problems = [unknown_name("param", name, known) for name in params if name not in known]
    values = {name: params.get(name, field["default"]) for name, field in known.items()}
    texts = ("name", "recording", "objective", "prices", "columns")
    problems += [
        f"{name} must be text, got {values[name]!r}"
        for name in texts
        if not isinstance(values[name] or "", str)
    ]
    given = entries_of(values["controllers"] or [])
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        problems.append(f"controllers must be names, one per line, got {given!r}")
    if not values["recording"]:
        problems.append("recording: write the path of a recording")
    if isinstance(values["name"], str) and not re.fullmatch(NAMED, values["name"]):
        problems.append(f"name: use small letters, digits, - and _, got {values['name']!r}")
    if problems:
        raise SpecError("the params", problems)
    asked = {name: values[name] or known[name]["default"] for name in texts[1:]}
    numbers = {
        name: values[name]
        for name in ("max_instances", "per_host", "seeds", "start_up_s", "restart_s")
    }
    request = AdviceRequest(**asked, **numbers, controllers=tuple(given))
    return FOLDER + values["name"], request


def require_free(folder: Path) -> None:
    """Raise SpecError when an experiment has taken the folder of an advice."""
    if (folder / "runs").exists():
        raise SpecError("name", [f"{folder.name} is an experiment here; choose another name"])
