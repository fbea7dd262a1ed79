"""What must be true of `tournament`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import filled, not_empty, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """A mean rests on a run at least, on no more than there are, and is not negative."""
    return [
        *well_formed("tournament"),
        not_empty(),
        *filled(("unit",)),
        *within(("mean",), 0),
        *within(("runs",), 1, len(runs)),
    ]
