"""What must be true of `scaling`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import every_run, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

COUNTS = (
    "upscaling",
    "downscaling",
    "migrations",
    "hosts_leased",
    "hosts_prolonged",
    "hosts_released",
)


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Every minute has its counts."""
    return [
        *well_formed("scaling"),
        *every_run(runs),
        *within(("minute", *COUNTS), 0),
    ]
