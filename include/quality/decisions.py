"""What must be true of `decisions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import every_run, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Every controller leaves a trace, at least that it waited."""
    return [
        *well_formed("decisions"),
        *every_run(runs),
        *within(("decisions",), 1),
    ]
