"""What the address of the page asks for, and the addresses of its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from include.reports.results import FILTERS, ORDERS, Query

ASCENDING, DESCENDING = "up", "down"


def query_of(values: Mapping[str, str]) -> Query:
    """The query that an address means; what is unknown or no number counts as not given."""
    page = values.get("page", "")
    sort = values.get("sort", "")
    return Query(
        equal={name: values[name] for name in FILTERS if values.get(name)},
        text=values.get("text", "").strip(),
        sort=sort if sort in ORDERS else "when",
        descending=values.get("order", DESCENDING) != ASCENDING,
        page=min(int(page), 10**6) if page.isdecimal() and int(page) else 1,
    )


def address_of(query: Query, **changes: object) -> str:
    """The query part of the address of the same list with something else."""
    other = replace(query, **changes)  # type: ignore[arg-type]
    values = {
        **other.equal,
        "text": other.text,
        "sort": other.sort,
        "order": DESCENDING if other.descending else ASCENDING,
        "page": str(other.page),
    }
    defaults = {"text": "", "sort": "when", "order": DESCENDING, "page": "1"}
    return urlencode({name: value for name, value in values.items() if value != defaults.get(name)})


def sorted_by(query: Query, order: str) -> str:
    """The address of the list sorted by this; once more turns it around."""
    again = query.sort == order
    return address_of(query, sort=order, descending=again and not query.descending, page=1)
