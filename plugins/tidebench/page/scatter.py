"""Cost against compliance of what is compared, as places in a picture of fixed size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.results.reports.statistics import Mean
from tidebench.page.better import as_mean

COST, SHARE = "strict_total_cost", "strict_near_real_time_compliance_percent"
WIDTH, LEAST_HEIGHT = 1360, 180
LEFT, RIGHT, TOP, BOTTOM = 60, 320, 12, 36
"""Margins; labels are to the right of their points, in a margin that grows with the longest."""
LETTER_WIDTH, LABEL_HEIGHT = 7, 15
TICKS = 4


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One case: its place, half the widths of its intervals, and how high its label stands."""

    label: str
    cost: Mean
    share: Mean
    x: float
    y: float
    half_x: float
    half_y: float
    label_y: float


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points, and marks of both axes as place and value."""

    points: Sequence[CostPoint]
    x_ticks: Sequence[tuple[float, float]]
    y_ticks: Sequence[tuple[float, float]]
    height: int
    bottom: int
    """Where the axis of costs is."""
    right: int
    """Where it ends."""
    width: int = WIDTH
    left: int = LEFT


def scatter_of(labels: Sequence[str], values: Mapping[str, Sequence[Any]]) -> Scatter | None:
    """One point per column that has cost and share; None of fewer than two. Values by metric."""
    costs, shares = (map(as_mean, values.get(name, ())) for name in (COST, SHARE))
    dots = [
        (label, cost, share)
        for label, cost, share in zip(labels, costs, shares, strict=False)
        if cost is not None and share is not None
    ]
    if len(dots) < 2:
        return None
    height = max(LEAST_HEIGHT, TOP + LABEL_HEIGHT * len(dots) + BOTTOM)
    bottom = height - BOTTOM
    right = WIDTH - max(RIGHT, 24 + LETTER_WIDTH * max(len(label) for label, _, _ in dots))
    right = max(right, WIDTH // 3)
    x_axis = _Axis([cost for _, cost, _ in dots], LEFT, right)
    y_axis = _Axis([share for _, _, share in dots], bottom, TOP)
    heights = _apart([y_axis.at(share.mean) for _, _, share in dots], bottom)
    points = [
        CostPoint(
            label=label,
            cost=cost,
            share=share,
            x=x_axis.at(cost.mean),
            y=y_axis.at(share.mean),
            half_x=x_axis.length(cost.half or 0.0),
            half_y=y_axis.length(share.half or 0.0),
            label_y=label_y,
        )
        for (label, cost, share), label_y in zip(dots, heights, strict=True)
    ]
    return Scatter(points, x_axis.ticks(), y_axis.ticks(), height, bottom, right)


class _Axis:
    """Values from just below the lowest end of an interval to just above the highest."""

    def __init__(self, means: Sequence[Mean], begin: float, end: float) -> None:
        low = min(mean.mean - (mean.half or 0.0) for mean in means)
        high = max(mean.mean + (mean.half or 0.0) for mean in means)
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        self.low, self.high = low - margin, high + margin
        self.begin, self.end = begin, end

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def length(self, value: float) -> float:
        return round(abs(self.end - self.begin) * value / (self.high - self.low), 1)

    def ticks(self) -> list[tuple[float, float]]:
        """Round values at even distances."""
        step = _round_up((self.high - self.low) / TICKS)
        first = int(self.low // step) + 1
        values = [step * k for k in range(first, first + TICKS + 1)]
        return [(self.at(value), round(value, 6)) for value in values if value <= self.high]


def _round_up(step: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** int(f"{step:e}".partition("e")[2])
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * 0.999)


def _apart(heights: Sequence[float], bottom: float) -> list[float]:
    """Where labels stand so that none covers another, in the order of their points."""
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    placed = list(heights)
    highest = float("-inf")
    for k in order:
        placed[k] = max(heights[k], highest)
        highest = placed[k] + LABEL_HEIGHT
    lowest = bottom
    for k in reversed(order):
        placed[k] = min(placed[k], lowest)
        lowest = placed[k] - LABEL_HEIGHT
    return placed
