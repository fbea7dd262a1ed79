"""What must be true of `cells`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """A cell rests on a run at least; a sweep may leave no controller at its defaults."""
    return [
        *well_formed("cells"),
        *within(("mean",), 0),
        *within(("runs",), 1, len(runs)),
    ]
