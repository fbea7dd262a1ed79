"""The trigger form of the DAG `shadow_report`, and what a filled-in form asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from pydantic import Field

from include.advise.form import OBJECTIVE, PRICES, filled_in
from include.advise.request import AdviceRequest
from include.experiment.form import Section, form_of
from include.model.errors import SpecError


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
    objective: str = OBJECTIVE
    prices: str = PRICES
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
    texts = ("shadow", "day", "objective", "prices")
    values, problems = filled_in(params, shadow_params(), texts, "shadow")
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
