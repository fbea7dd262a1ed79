"""What must be true of `scaling_total`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import every_run, well_formed, within
from include.quality.scaling import COUNTS

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """Counts; hosts of the first deployment may be given back though no minute leased them."""
    return [
        *well_formed("scaling_total"),
        *every_run(runs),
        *within(COUNTS, 0),
    ]
