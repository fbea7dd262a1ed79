"""Cost against compliance: every controller on every pattern, measured beside published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from include.results.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"btu-runtime": "#2f7fc1", "btu": "#157f78", "threshold": "#d97a1f", "fixed": "#8a97a6"}
MARKERS = {"btu-runtime": "o", "btu": "s", "threshold": "D", "fixed": "^"}
_COMPLIANCE, _COST = "near_real_time_compliance", "resource_cost"

Cells = Sequence[Mapping[str, Any]]


def draw(cells: Cells, published: Cells, patterns: Sequence[str]) -> str:
    """One panel per pattern: what the hosts cost, and which share was near real-time for it.

    ``cells`` and ``published`` are rows with pattern, controller, btu_min, metric, mean and
    sigma; one line per controller joins its BTUs. Published points are hollow.
    """
    figure, axes = style.grid(-(-len(patterns) // 2), 2, height_in=2.75)
    for axis, pattern in zip(axes, patterns, strict=False):
        style.titled(axis, pattern.replace("_", " "))
        for controller, colour in COLOURS.items():
            _measured(axis, _points(cells, pattern, controller), controller, colour)
            hollow = _points(published, pattern, controller)
            axis.plot(
                [x for _, x, y, _, _ in hollow], [y for _, x, y, _, _ in hollow], linestyle="",
                marker=MARKERS[controller], markersize=6, markerfacecolor="none",
                markeredgecolor=colour, markeredgewidth=1.1,
            )  # fmt: skip
        axis.tick_params(labelsize=9)
        axis.margins(0.09)
    style.share_limits(axes[: len(patterns)])
    for unused in axes[len(patterns) :]:
        unused.set_visible(False)
    for axis in axes[-2:]:
        axis.set_xlabel("cost of the hosts", fontsize=9.5)
    for axis in axes[::2]:
        axis.set_ylabel("near real-time compliance, %", fontsize=9.5)
    style.legend_above(axes[0], 4, handlelength=1.6)
    return style.as_svg(figure, "tradeoff", "Cost of the hosts against near real-time compliance")


def _measured(axis: Axes, points: Sequence[tuple[float, ...]], label: str, colour: str) -> None:
    xs, ys = [point[1] for point in points], [point[2] for point in points]
    axis.plot(xs, ys, color=colour, linewidth=1.2, marker=MARKERS[label], markersize=5, label=label)
    axis.errorbar(
        xs, ys, xerr=[point[3] for point in points], yerr=[point[4] for point in points],
        color=colour, linestyle="", linewidth=0.9,
    )  # fmt: skip
    different = points if len({point[1:3] for point in points}) > 1 else []
    for btu_min, x, y, _, _ in different:
        axis.annotate(
            f"{btu_min:g}", (x, y), xytext=(4, -9), textcoords="offset points", fontsize=7.5
        )


def _points(rows: Cells, pattern: str, controller: str) -> list[tuple[float, ...]]:
    """BTU, cost, compliance and both sigmas, for every BTU that has cost and compliance."""
    cells = {
        (row["btu_min"], row["metric"]): row
        for row in rows
        if row["pattern"] == pattern and row["controller"] == controller
    }
    points: list[tuple[float, ...]] = []
    for btu_min in sorted(btu for btu, metric in cells if metric == _COST and btu is not None):
        cost = cells[btu_min, _COST]
        share = cells.get((btu_min, _COMPLIANCE)) or cells.get((None, _COMPLIANCE))
        if share:
            sigmas = (cost["sigma"] or 0.0, share["sigma"] or 0.0)
            points.append((btu_min, cost["mean"], share["mean"], *sigmas))
    return points
