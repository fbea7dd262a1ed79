"""What must be true of `utilisation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.quality.expectations import descending, every_run, well_formed, within

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def expectations(runs: Sequence[str]) -> list[Expectation]:
    """CPU is measured with noise; an instance that drains keeps its memory beside its successor."""
    return [
        *well_formed("utilisation"),
        *every_run(runs),
        *within(("observations",), 1),
        *within(("host_cpu_mean_percent", "host_cpu_max_percent"), 0, 120),
        *within(("host_memory_mean_percent",), 0, 100),
        *within(("host_memory_max_percent",), 0, 200),
        *descending("host_cpu_max_percent", "host_cpu_mean_percent"),
        *descending("host_memory_max_percent", "host_memory_mean_percent"),
    ]
