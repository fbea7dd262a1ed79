"""From values to HTML. Everything that is put into a template is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from include.results.reports.statistics import Mean
from include.results.reports.tournament import in_title
from include.results.templates import templates_in
from tidebench.links import PREFIX, airflow_url

PAGE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'self'; "
    "base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}


def home() -> str:
    """The address of this page."""
    return airflow_url(PREFIX)


def render(name: str, content: Mapping[str, object]) -> str:
    """The page of this name."""
    return environment().get_template(f"{name}.html.j2").render(content)


@cache
def environment() -> Environment:
    """The templates, with what all of them use."""
    templates = templates_in(Path(__file__).parent / "templates")
    templates.globals.update(airflow=airflow_url(""), home=home())
    templates.filters.update(number=number, difference=difference, when=when, in_title=in_title)
    return templates


def number(value: Any, decimals: int | None = None) -> str:
    """A number for a reader, a mean with half the width of its interval; a dash where is none."""
    if isinstance(value, Mean):
        half = "" if value.half is None else f" ± {number(value.half, decimals)}"
        return f"{number(value.mean, decimals)}{half}"
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.{decimals}f}" if decimals is not None else f"{value:,.9g}"


def difference(value: float, decimals: int | None) -> str:
    """A number with its sign."""
    return f"{value:+,.{decimals or 0}f}"


def when(at: datetime | str | None) -> str:
    """A moment to the minute, in UTC; a text is ISO 8601."""
    if not at:
        return "-"
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
