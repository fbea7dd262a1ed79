"""What must be true of `compliance`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import descending, every_run, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

SHARES = (
    "relaxed_compliance_percent",
    "near_real_time_compliance_percent",
    "real_time_compliance_percent",
)


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Compliance is a share, and a wider limit never lowers it."""
    return [
        *well_formed("compliance"),
        *every_run(runs),
        *within(SHARES, 0, 100),
        *descending(*SHARES),
        *within(("sampled_items",), 1),
        *within(("duration_p50_ms", "duration_p95_ms"), 0),
        *descending("duration_p95_ms", "duration_p50_ms"),
    ]
