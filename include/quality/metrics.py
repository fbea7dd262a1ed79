"""What must be true of `metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import every_run, filled, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Every run has figures, and none of them is negative."""
    return [
        *well_formed("metrics"),
        *every_run(runs),
        *filled(("pattern", "controller", "seed")),
        *within(("value",), 0),
    ]
