"""What must be true of `comparison`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import filled, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Two controllers are compared on a pair at least; one alone is compared with nothing."""
    return [
        *well_formed("comparison"),
        *within(("pairs",), 1, len(runs)),
        *within(("mean", "other_mean"), 0),
        *filled(("difference",)),
    ]
