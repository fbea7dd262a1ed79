"""What must be true of `means`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import not_empty, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """A mean rests on a run at least, and on no more than there are."""
    return [
        *well_formed("means"),
        not_empty(),
        *within(("mean",), 0),
        *within(("runs",), 1, len(runs)),
    ]
