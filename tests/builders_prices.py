"""Price books of nobody's cloud."""

from __future__ import annotations

from typing import Any

from include.model.billing import CloudPriceBook

PER_HOUR = 0.1


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
