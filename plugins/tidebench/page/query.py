"""What the address of the page asks for, and the addresses of its neighbours."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from urllib.parse import urlencode

from include.results.reports.results import FILTERS, ORDERS, RANGES, SHOWN, Query

ASCENDING, DESCENDING = "up", "down"
_WHOLE = re.compile(r"[0-9]{1,18}")


def query_of(values: Mapping[str, str]) -> Query:
    """The query that an address means; what is unknown or no number counts as not given."""
    page = values.get("page", "")
    sort, shown = values.get("sort", ""), values.get("shown", "")
    return Query(
        equal=dict(_equal(values)),
        ranges=dict(_ranges(values)),
        tag=values.get("tag", "").strip().lower(),
        shown=shown if shown in SHOWN else SHOWN[0],
        text=values.get("text", "").strip(),
        sort=sort if sort in ORDERS else "when",
        descending=values.get("order", DESCENDING) != ASCENDING,
        page=min(int(page), 10**6) if _WHOLE.fullmatch(page) and int(page) else 1,
    )


def address_of(query: Query, **changes: object) -> str:
    """The query part of the address of the same list with something else."""
    values = _values(replace(query, **changes))  # type: ignore[arg-type]
    defaults = _values(Query())
    return urlencode({name: value for name, value in values.items() if value != defaults.get(name)})


def _values(query: Query) -> Mapping[str, object]:
    """What the address of a query says, if it says all of it."""
    return {
        **query.equal,
        **query.ranges,
        "tag": query.tag,
        "shown": query.shown,
        "text": query.text,
        "sort": query.sort,
        "order": DESCENDING if query.descending else ASCENDING,
        "page": query.page,
    }


def sorted_by(query: Query, order: str) -> str:
    """The address of the list sorted by this; once more turns it around."""
    is_sorted = query.sort == order
    return address_of(query, sort=order, descending=is_sorted and not query.descending, page=1)


def _equal(values: Mapping[str, str]) -> Iterator[tuple[str, str | float]]:
    for name, read in FILTERS.items():
        text = values.get(name, "").strip()
        if read is int and not _WHOLE.fullmatch(text):
            continue  # longer ones are in no database
        if text:
            with suppress(ValueError):
                value = read(text)
                if isinstance(value, str) or math.isfinite(value):
                    yield name, value


def _ranges(values: Mapping[str, str]) -> Iterator[tuple[str, str | float]]:
    for name in RANGES:
        for end in (f"{name}_from", f"{name}_to"):
            text = values.get(end, "").strip()
            with suppress(ValueError):
                if name == "date" and text:
                    yield end, date.fromisoformat(text).isoformat()
                elif text and math.isfinite(float(text)):
                    yield end, float(text)
