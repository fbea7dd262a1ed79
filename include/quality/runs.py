"""What must be true of `runs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import every_run, filled, matching, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """A run says what it was, so that somebody else can repeat it."""
    return [
        *well_formed("runs"),
        *every_run(runs),
        *filled(("controller", "variant", "pattern", "topology", "conditions", "testbed", "seed")),
        *within(("btu_min", "duration_min", "vcpus", "memory_mb"), 0.001),
        *within(("sample_every_items",), 1),
        matching("spec_hash", "^[0-9a-f]{8,}$", "spec_hash is a hash."),
    ]
