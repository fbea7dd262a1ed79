"""The suites by table. To add one: write the file and the line; a test misses no table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from include.quality import (
    cells,
    comparison,
    compliance,
    cost,
    decisions,
    elasticity,
    input_checks,
    means,
    metrics,
    outcomes,
    runs,
    scaling,
    scaling_total,
    time_to_adapt,
    timeline,
    tournament,
    utilisation,
)

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

SUITES: Mapping[str, Callable[[Sequence[str]], list[Expectation]]] = {
    "input_checks": input_checks.expectations,
    "runs": runs.expectations,
    "compliance": compliance.expectations,
    "cost": cost.expectations,
    "time_to_adapt": time_to_adapt.expectations,
    "scaling": scaling.expectations,
    "scaling_total": scaling_total.expectations,
    "timeline": timeline.expectations,
    "utilisation": utilisation.expectations,
    "elasticity": elasticity.expectations,
    "decisions": decisions.expectations,
    "metrics": metrics.expectations,
    "means": means.expectations,
    "cells": cells.expectations,
    "comparison": comparison.expectations,
    "outcomes": outcomes.expectations,
    "tournament": tournament.expectations,
}
