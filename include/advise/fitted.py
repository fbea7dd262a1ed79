"""A fitted value with its interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedValue:
    """A value and the interval that 95 % of resampled hours (or shorter parts) give."""

    value: float
    low: float
    high: float
