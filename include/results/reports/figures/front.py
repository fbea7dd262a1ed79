"""Cost against compliance: a point per controller, its variants joined by a line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import hypot
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from include.model.errors import SpecError, unknown_name
from include.results.reports.figures import style
from include.results.reports.figures.names import Box, box_of, covered, outside
from include.results.reports.figures.tournament import COLOURS, COST, unbeaten
from include.results.reports.statistics import half_interval
from include.results.reports.tournament import (
    END_TO_END_SHARE,
    METRICS,
    case_of,
    controller_name,
    group_of,
    in_title,
)
from include.results.tables.staged import Row, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

SHARE = "strict_near_real_time_compliance_percent"
LEAST_LATE = 0.5
"""Percent; the axis ends there, for it is logarithmic."""
_FONT = 7.5
_PLACES = tuple(
    (round(far * right), round(far * up) - 3, side)
    for far in (6, 11, 18, 26, 34, 44, 56, 70, 86, 104)
    for right, up, side in (
        (1, 0.7, "left"), (1, -0.7, "left"), (-1, 0.7, "right"), (-1, -0.7, "right"),
        (1, 0, "left"), (-1, 0, "right"), (0, 1.3, "center"), (0, -1.3, "center"),
        (1, 0.35, "left"), (1, -0.35, "left"), (-1, 0.35, "right"), (-1, -0.35, "right"),
        (0.6, 1.1, "left"), (0.6, -1.1, "left"), (-0.6, 1.1, "right"), (-0.6, -1.1, "right"),
    )
)  # fmt: skip
"""Where the name of a point may stand, in typographic points from it; the nearest first."""
_ROUNDS = 4
"""How often each name looks for its place."""
_NEAR = 14
"""Typographic points; from farther away a line leads to the point."""


@dataclass(frozen=True, slots=True)
class Point:
    """One controller: the means of its cost, and of its percentage of items that were late.

    With the halves of their 95 % confidence intervals, 0 where there is one run.
    """

    controller: str
    variant: str
    cost: float
    late: float
    cost_half: float
    late_half: float

    @property
    def name(self) -> str:
        """The controller, with the values of its options; of ours, whose line says whose they are,
        the value alone."""
        values = "/".join(option.partition("=")[2] for option in self.variant.split(", "))
        if not values:
            return self.controller
        return values if group_of(self.controller) == "ours" else f"{self.controller} {values}"

    @property
    def place(self) -> tuple[float, float]:
        """Cost and percentage of late items: lower is better in both."""
        return self.cost, self.late

    @property
    def drawn_late(self) -> float:
        """Where the percentage of late items is on its axis."""
        return max(LEAST_LATE, self.late)

    @property
    def late_bar(self) -> tuple[float, float]:
        """How far the interval of the late items goes on below and above that."""
        low = max(LEAST_LATE, self.late - self.late_half)
        return self.drawn_late - low, max(0.0, self.late + self.late_half - self.drawn_late)


def draw(tournament: Sequence[Row], fitted: Collection[str], *, end_to_end: bool = False) -> str:
    """One panel per workload and BTU, from the rows of the table tournament.

    ``fitted`` are patterns that options were chosen on: where any is given, a panel says whether
    its own is one. Raises SpecError for a pattern that is not drawn.
    Large points are on the Pareto front. Items that are overdue and were not processed are late.
    """
    share = END_TO_END_SHARE if end_to_end else SHARE
    by_case = grouped(tournament, case_of).items()
    panels = [(case, points) for case, rows in by_case if (points := _points(rows, share))]
    panels.sort(key=lambda panel: (panel[0][1] in fitted, panel[0]))
    drawn = {pattern for (_, pattern, _, _), _ in panels}
    if unknown := [
        unknown_name("pattern", pattern, drawn) for pattern in fitted if pattern not in drawn
    ]:
        raise SpecError("--fitted", unknown)
    figure, axes = style.grid(max(1, len(panels)), 1, height_in=4.3)
    for axis, ((topology, pattern, conditions, btu_min), points) in zip(axes, panels, strict=False):
        words = " · ".join(
            filter(None, [topology, pattern, f"BTU {btu_min:g} min", in_title(conditions)])
        )
        remark = (
            " (options were chosen on it)" if pattern in fitted else " (no option was chosen on it)"
        )
        style.titled(axis, words.replace("_", " ") + (remark if fitted else ""))
        _panel(axis, points)
        axis.set_ylabel(METRICS[share][0], fontsize=9)
    style.share_limits(axes)
    for axis in axes:
        _ticks(axis)
    figure.draw_without_rendering()  # from here on it is known where a point is
    for axis, (_, points) in zip(axes, panels, strict=False):
        _names(axis, points)
    return style.as_svg(figure, "front", "Cost of the hosts against near real-time compliance")


def _points(rows: Sequence[Row], metric: str) -> list[Point]:
    """The points of rows with a cost and a compliance, by controller and cost."""
    cells = {(controller_name(row), row["metric"]): row for row in rows}
    points = []
    for row in rows:
        share = cells.get((controller_name(row), metric))
        if row["metric"] == COST and row["mean"] > 0 and share:
            means, halves = (row["mean"], 100 - share["mean"]), (_half(row), _half(share))
            points.append(Point(row["controller"], row["variant"], *means, *halves))
    return sorted(points, key=lambda point: (point.controller, point.cost, point.late))


def _half(row: Row) -> float:
    return half_interval(row["sigma"], row["runs"]) or 0.0


def _panel(axis: Axes, points: Sequence[Point]) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    places = [point.place for point in points]
    for controller, group in groupby(points, lambda point: point.controller):
        mine, colour = list(group), COLOURS[group_of(controller)]
        costs, late = [point.cost for point in mine], [point.drawn_late for point in mine]
        axis.plot(costs, late, color=colour, linewidth=1.3, zorder=2)
        axis.errorbar(
            costs, late, xerr=[point.cost_half for point in mine],
            yerr=list(zip(*(point.late_bar for point in mine), strict=True)),
            color=colour, linestyle="", linewidth=0.7, alpha=0.5, zorder=1,
        )  # fmt: skip
        sizes = [34 if unbeaten(point.place, places) else 9 for point in mine]
        axis.scatter(costs, late, s=sizes, color=colour, zorder=3)
    axis.margins(0.06)
    axis.set_xlabel("cost of the hosts", fontsize=9)


def _ticks(axis: Axes) -> None:
    """Costs as they are; of late items the rest is compliance, and more of it is up."""
    from matplotlib.ticker import NullFormatter, NullLocator

    low, high = axis.get_xlim()
    costs = [digit * 10.0**power for power in range(-2, 6) for digit in (1, 1.5, 2, 3, 5, 7)]
    costs = [cost for cost in costs if low <= cost <= high]
    axis.set_xticks(costs, [f"{cost:g}" for cost in costs])
    least, most = axis.get_ylim()
    late = [
        percent
        for percent in (0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
        if least <= percent <= most
    ]
    axis.set_yticks(late, [f"{100 - percent:g}" for percent in late])
    axis.set_ylim(most, least)
    for scale in (axis.xaxis, axis.yaxis):
        scale.set_minor_locator(NullLocator())
        scale.set_minor_formatter(NullFormatter())
    axis.tick_params(labelsize=8.5, length=0)


def _names(axis: Axes, points: Sequence[Point]) -> None:
    """Every point's name where it covers neither a point, a line nor another name, if there is
    room; each looks again once all others have a place."""
    to_points = 72 / axis.figure.dpi
    at = [tuple(axis.transData.transform((p.cost, p.drawn_late)) * to_points) for p in points]
    marks = np.array([(x - 4, y - 4, x + 4, y + 4) for x, y in at] + _along(points, at))
    panel = tuple(np.array(axis.get_window_extent().extents) * to_points)
    boxes = [
        np.array([box_of(at[k], point.name, place, _FONT) for place in _PLACES])
        for k, point in enumerate(points)
    ]
    costs = [covered(own, marks) + 4 * outside(own, panel) for own in boxes]
    places = [point.place for point in points]
    order = sorted(range(len(points)), key=lambda k: (not unbeaten(places[k], places), k))
    chosen: dict[int, int] = {}
    for k in order * _ROUNDS:
        others = [boxes[other][place] for other, place in chosen.items() if other != k]
        met = costs[k] + 2 * covered(boxes[k], np.array(others).reshape(-1, 4))
        chosen[k] = int(met.argmin())
    for k in order:
        point = points[k]
        right, up, side = _PLACES[chosen[k]]
        ours = group_of(point.controller) == "ours" and not point.variant
        lead = {"arrowstyle": "-", "color": style.TEXT, "linewidth": 0.4, "alpha": 0.6}
        axis.annotate(
            point.name, (point.cost, point.drawn_late),
            xytext=(right, up), textcoords="offset points", ha=side,
            fontsize=_FONT, color=style.TEXT, fontweight="bold" if ours else "normal",
            arrowprops=lead if abs(right) + abs(up) > _NEAR else None,
        )  # fmt: skip


def _along(points: Sequence[Point], at: Sequence[tuple[float, ...]]) -> list[Box]:
    """Small boxes along the lines that join the variants of a controller."""
    boxes = []
    for (one, (x, y)), (other, (x2, y2)) in pairwise(zip(points, at, strict=True)):
        if one.controller == other.controller:
            steps = max(1, round(hypot(x2 - x, y2 - y) / 3))
            along = [(x + (x2 - x) * i / steps, y + (y2 - y) * i / steps) for i in range(steps)]
            boxes += [(a - 1, b - 1, a + 1, b + 1) for a, b in along]
    return boxes
