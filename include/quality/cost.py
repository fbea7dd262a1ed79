"""What must be true of `cost`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import descending, every_run, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

PENALTIES = ("real_time_penalty_cost", "near_real_time_penalty_cost", "relaxed_penalty_cost")
TOTALS = ("real_time_total_cost", "near_real_time_total_cost", "relaxed_total_cost")


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Nobody is paid for hosts; every lease pays a BTU; a wider limit never costs more."""
    return [
        *well_formed("cost"),
        *every_run(runs),
        *within(("leases", "paid_btus", "resource_cost", *PENALTIES, *TOTALS), 0),
        *descending("paid_btus", "leases"),
        *descending(*PENALTIES),
        *descending(*TOTALS, "resource_cost"),
    ]
