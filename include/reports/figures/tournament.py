"""Cost against what was got for it: every controller, one panel per workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from include.reports.figures import style
from include.reports.tournament import METRICS, Match, Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 2
COLOURS = (
    "#2f7fc1", "#d97a1f", "#8a97a6", "#9a63b5", "#157f78", "#d9604a", "#7a5c3e", "#3f8f3a",
    "#c2498f", "#b8a11a",
)  # fmt: skip
MARKERS = "os^DvPXp"
UNREGISTERED = ("#101112", "*")


@cache
def looks() -> Mapping[str, tuple[str, str]]:
    """The colour and marker of every controller: those whose names begin alike share a colour."""
    from include.controllers import CONTROLLERS

    found: dict[str, tuple[str, str]] = {}
    families: dict[str, int] = {}
    for name in CONTROLLERS:
        family = name.partition("-")[0]
        colour = COLOURS[families.setdefault(family, len(families)) % len(COLOURS)]
        alike = sum(look[0] == colour for look in found.values())
        found[name] = (colour, MARKERS[alike % len(MARKERS)])
    return found


def draw(found: Sequence[Match]) -> str:
    """Cost of the hosts on a logarithmic scale; means with their 95 % confidence intervals."""
    rows = -(-len(found) // COLUMNS)
    figure, axes = style.grid(rows, COLUMNS, height_in=2.75)
    for axis, match in zip(axes, found, strict=False):
        _panel(axis, match)
    style.share_limits(axes[: len(found)], x=False)  # a cost is one on its own workload only
    for unused in axes[len(found) :]:
        unused.set_visible(False)
    handles = {
        name: handle
        for axis in axes[: len(found)]
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper left", ncols=5, frameon=False,
        fontsize=8.5, handlelength=1.2, columnspacing=1.2,
    )  # fmt: skip
    description = "Cost of the hosts against strict compliance or utility of every controller"
    return style.as_svg(figure, "tournament", description)


def _panel(axis: Axes, match: Match) -> None:
    style.titled(axis, match.title)
    for one in match.standings:
        _point(axis, one, match.quality)
    axis.set_xscale("log")
    _plain_ticks(axis)
    axis.set_xlabel("cost of the hosts", fontsize=9)
    axis.set_ylabel(METRICS[match.quality][0], fontsize=9)
    axis.tick_params(labelsize=8.5)
    axis.margins(0.09)


def _point(axis: Axes, one: Standing, quality: str) -> None:
    cost, got = one.cells.get("resource_cost"), one.cells.get(quality)
    if cost is None or got is None or cost.mean <= 0:
        return
    colour, marker = looks().get(one.name.split(" ")[0], UNREGISTERED)
    axis.errorbar(
        cost.mean, got.mean, xerr=_inside(cost.half, cost.mean), yerr=got.half, color=colour,
        linestyle="", linewidth=0.9, zorder=2,
    )  # fmt: skip
    axis.plot(
        cost.mean, got.mean, color=colour, linestyle="", marker=marker, markersize=6, alpha=0.85,
        markeredgecolor="#ffffff", markeredgewidth=0.5, label=one.name, zorder=3,
    )  # fmt: skip


def _inside(half: float | None, mean: float) -> list[list[float]] | None:
    """An interval on a logarithmic scale, cut where it would reach 0."""
    return None if half is None else [[min(half, 0.9 * mean)], [half]]


def _plain_ticks(axis: Axes) -> None:
    """1, 2, 5, 10, ... instead of powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
