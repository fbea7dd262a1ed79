"""What must be true of `elasticity`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import every_run, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Shares of time are shares, an operator needs an instance, and nothing is less than none."""
    return [
        *well_formed("elasticity"),
        *every_run(runs),
        *within(("demand_instances",), 1),
        *within(("supply_instances", "accuracy_u_percent", "accuracy_o_percent"), 0),
        *within(("timeshare_u_percent", "timeshare_o_percent", "instability_percent"), 0, 100),
    ]
