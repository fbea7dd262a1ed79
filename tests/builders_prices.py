"""Price books of nobody's cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from include.model.billing import CloudPriceBook

PER_HOUR = 0.1
BOOK: dict[str, Any] = {
    "name": "mine", "provider": "somebody", "region": "here", "instance_type": "cx1",
    "currency": "EUR", "per_hour": 0.36, "rule": "hetzner", "cap_per_month": 20,
    "as_of": "2026-01-31", "source": "a price list",
}  # fmt: skip
"""As its user writes it."""


def write_book(path: Path, **changes: Any) -> str:
    """The file of a book, and its path."""
    path.write_text(yaml.safe_dump(BOOK | changes))
    return str(path)


def cloud_book(**changes: Any) -> CloudPriceBook:
    """A book of 0.1 an hour, billed by the second from the order on, at least a minute."""
    btu_s = changes.get("btu_s", 1.0)
    values: dict[str, Any] = {
        "name": "cloud",
        "btu_s": btu_s,
        "price_per_btu": PER_HOUR * btu_s / 3600,
        "penalty_per_item": 0.0001,
        "minimum_s": 60.0,
        "currency": "EUR",
        "provider": "nobody",
        "region": "nowhere",
        "instance_type": "small",
        "as_of": "2026-01-31",
        "source": "made up",
    }
    return CloudPriceBook(**(values | changes))
