"""What must be true of `time_to_adapt`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import descending, known_runs, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """A row is about delayed stretches; a run that was never late has none."""
    return [
        *well_formed("time_to_adapt"),
        *known_runs(runs),
        *within(("delayed_stretches",), 1),
        *within(("unfinished_stretches",), 0),
        *descending("delayed_stretches", "unfinished_stretches"),
        *within(("time_to_adapt_mean_s",), 0.001),
        *descending("time_to_adapt_max_s", "time_to_adapt_mean_s"),
    ]
