"""What must be true of `timeline`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import descending, every_run, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Counts of what is there; the level may be missing where nobody recorded it."""
    return [
        *well_formed("timeline"),
        *every_run(runs),
        *within(("time_s", "hosts", "instances", "ready_instances", "waiting_items"), 0),
        *descending("instances", "ready_instances"),
    ]
