"""How providers bill a lease, by the name that a price book gives. To add a rule, add a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingRule:
    """Every ``billed_every_s`` begun is billed, at least ``minimum_s``; ``says`` in words.

    ``unverified`` says what of it nobody has checked against the provider's own pages.
    """

    billed_every_s: float
    minimum_s: float
    says: str
    billed_from: Literal["order", "active"] = "order"
    interrupted_free_s: float = 0.0
    needs_cap: bool = False
    unverified: str = ""


RULES: Mapping[str, BillingRule] = {
    "aws": BillingRule(
        billed_every_s=1, minimum_s=60, says="EC2 Linux: by the second, at least a minute"
    ),
    "aws-spot": BillingRule(
        billed_every_s=1,
        minimum_s=60,
        interrupted_free_s=3600,
        says="EC2 spot: by the second; free if EC2 takes the host back within its first hour",
    ),
    "gce": BillingRule(billed_every_s=1, minimum_s=60, says="by the second, at least a minute"),
    "azure": BillingRule(
        billed_every_s=60,
        minimum_s=60,
        says="by the minute",
        unverified="nobody has checked how Azure bills; the minute is presumed",
    ),
    "hetzner": BillingRule(
        billed_every_s=3600,
        minimum_s=3600,
        needs_cap=True,
        says="hours begun up to a cap a month, also while the host is stopped",
    ),
    "ovh": BillingRule(billed_every_s=3600, minimum_s=3600, says="hours begun"),
    "scaleway": BillingRule(
        billed_every_s=60,
        minimum_s=3600,
        says="at least an hour, then by the minute",
        unverified="only the hour is known; the minutes after it are presumed",
    ),
}
