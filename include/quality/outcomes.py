"""What must be true of `outcomes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import descending, every_run, filled, known, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Every run has come to something, and no share is beyond a whole."""
    return [
        *well_formed("outcomes"),
        *every_run(runs),
        *filled(("topology", "pattern", "conditions", "controller", "variant", "seed")),
        *within(("host_hours", "resource_cost", "scaling_events", "host_events"), 0),
        *descending("total_cost", "resource_cost"),
        *descending("relaxed_compliance_percent", "real_time_compliance_percent"),
        *descending("latency_p95_ms", "latency_p50_ms"),
        *known(("utility_percent",), 0, 100),
    ]
