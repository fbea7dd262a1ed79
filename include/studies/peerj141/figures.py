"""Cost against compliance, measured beside published; load, hosts and instances over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from include.results.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"btu-runtime": "#2f7fc1", "btu": "#157f78", "threshold": "#d97a1f", "fixed": "#8a97a6"}
MARKERS = {"btu-runtime": "o", "btu": "s", "threshold": "D", "fixed": "^"}
POLICIES = ("#7db8e8", "#2f7fc1", "#6a58c8", "#d97a1f")
"""The BTU-based approach from the shortest BTU to the longest, then the threshold."""
_COMPLIANCE, _COST = "near_real_time_compliance", "resource_cost"

Cells = Sequence[Mapping[str, Any]]
Curve = Sequence[tuple[float, float, float, float]]


def draw_tradeoff(cells: Cells, published: Cells, patterns: Sequence[str]) -> str:
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
            f"{btu_min:g}", (x, y), xytext=(-4, 4) if label == "btu-runtime" else (4, -9),
            ha="right" if label == "btu-runtime" else "left", textcoords="offset points",
            fontsize=7.5, color=colour,
        )  # fmt: skip


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


def scale_of_curves(curves: Iterable[Curve], length_min: float) -> style.Scale:
    """Axes that fit the curves of every policy, and of every pattern that is compared."""
    rows = [row for curve in curves for row in curve]
    limits = tuple((0.0, style.up_to(row[column] for row in rows)) for column in (1, 2, 3))
    return style.Scale(length_min, limits)


def draw_curves(pattern: str, curves: Mapping[str, Curve], scale: style.Scale) -> str:
    """Three panels, as Figs. 8-11, from the curves of each policy by its name, means over seeds.

    A curve has minute, level, hosts and instances at every monitoring time.
    """
    figure, axes = style.panels([0.95, 1.5, 1.9])
    first = next(iter(curves.values()))
    axes[0].fill_between(
        [row[0] for row in first], [row[1] for row in first], step="post",
        color=style.LOAD, alpha=0.35, linewidth=0,
    )  # fmt: skip
    for column, axis in ((2, axes[1]), (3, axes[2])):
        for (policy, curve), colour in zip(curves.items(), POLICIES, strict=False):
            axis.plot(
                [row[0] for row in curve], [row[column] for row in curve], label=policy,
                color=colour, linewidth=1.3, drawstyle="steps-post",
            )  # fmt: skip
    titles = ("Load: machines that publish", "Hosts leased", "Operator instances")
    for axis, title, limits in zip(axes, titles, scale.limits, strict=True):
        style.counted(axis, title, limits)
    style.legend_above(axes[2], 4, handlelength=1.6)
    style.minutes(axes[-1], scale.length_min)
    description = f"Load, hosts and operator instances over the minutes of pattern {pattern}"
    return style.as_svg(figure, f"curves {pattern}", description)
