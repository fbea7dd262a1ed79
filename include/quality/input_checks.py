"""What must be true of the measured rows, which Spark has counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import at_least, every_run, filled, well_formed

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Every count is within its limits."""
    return [
        *well_formed("input_checks"),
        *every_run(runs),
        *filled(("measured", "lowest")),
        at_least(
            "measured", "lowest", "Every count of the measured rows reaches its lowest value."
        ),
        at_least("highest", "measured", "No count of the measured rows exceeds its highest value."),
    ]
