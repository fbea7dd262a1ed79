"""The trigger form of the DAG `shadow_report`, and what a filled-in form asks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from pydantic import Field

from include.advise.form import advice_params, filled_in
from include.advise.request import AdviceRequest
from include.experiment.form import Section, form_of
from include.model.errors import SpecError, all_checked

OF_ADVICE = ("objective", "prices", "seeds")
"""What is asked as in the form of an advice."""


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
