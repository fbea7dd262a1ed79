"""The trigger form of the DAG `shadow_report`, and what a filled-in form asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from pydantic import Field

from include.advise.request import AdviceRequest
from include.experiment.form import Section, form_of
from include.experiment.prices import PRICE_BOOKS
from include.experiment.spec import NAMED
from include.model.errors import SpecError, unknown_name


def parse_day(text: str) -> date:
    """Of ``2026-01-31``. Raises SpecError."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SpecError("day", [f"write a day such as 2026-01-31, got {text!r}"]) from None


class WhichDay(Section):
    """Which day of which shadow, and what is asked of it."""

    shadow: str = Field(
        "shadow",
        title="Shadow",
        description="The folder of its --state, below the data root.",
    )
    day: str | None = Field(
        None, title="Day", description="Such as 2026-01-31, in UTC. None: the one before."
    )
    objective: str = Field(
        "latency p95 < 2 s",
        title="Objective",
        description="A latency, or a share as in 95 % within 2 s.",
    )
    prices: str = Field(
        "per_second",
        title="Prices",
        description=f"The path of a price book, or one of {', '.join(PRICE_BOOKS)}.",
    )
    seeds: int = Field(3, title="Seeds", description="How many replays each controller has.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DayAsked:
    """``shadow`` is a folder's name; the recording of ``request`` is not known yet."""

    shadow: str
    day: date
    request: AdviceRequest

    @property
    def folder(self) -> str:
        """Where what comes of it is kept."""
        return f"advice-{self.shadow}-{self.day.isoformat()}"


def shadow_params() -> dict[str, dict[str, Any]]:
    """The form."""
    return form_of(WhichDay)


def day_from_params(params: Mapping[str, Any], today: date) -> DayAsked:
    """What is asked. Raises SpecError for what the form itself has wrong."""
    known = shadow_params()
    problems = [unknown_name("param", name, known) for name in params if name not in known]
    values = {name: params.get(name, field["default"]) for name, field in known.items()}
    problems += [
        f"{name} must be text, got {values[name]!r}"
        for name in ("shadow", "day", "objective", "prices")
        if not isinstance(values[name] or "", str)
    ]
    if isinstance(values["shadow"], str) and not re.fullmatch(NAMED, values["shadow"]):
        problems.append(f"shadow: use small letters, digits, - and _, got {values['shadow']!r}")
    day = today - timedelta(days=1)
    try:
        day = parse_day(values["day"]) if isinstance(values["day"], str) and values["day"] else day
    except SpecError as error:
        problems += error.problems
    if problems:
        raise SpecError("the params", problems)
    request = AdviceRequest(
        recording="",
        objective=values["objective"],
        prices=values["prices"],
        seeds=values["seeds"],
    )
    return DayAsked(shadow=values["shadow"], day=day, request=request)
