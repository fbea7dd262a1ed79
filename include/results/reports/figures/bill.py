"""Where the cost of the hosts went: a stacked bar per controller, a panel per case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from textwrap import shorten
from typing import TYPE_CHECKING

from include.results.reports.figures import style
from include.results.reports.tournament import Case, case_of, controller_name
from include.results.tables.staged import Row, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 3
"""Panels beside each other."""
MOST_PANELS, MOST_BARS = 24, 40
"""With more of either nobody could read the figure; the table has them."""
MOST_LETTERS = 32
"""Of a name; the table has whole ones."""
PARTS: Mapping[str, tuple[str, str]] = {
    "work_cost": ("work", style.LEVELS[0]),
    "whole_instances_cost": ("whole instances", style.LEVELS[1]),
    "whole_hosts_cost": ("whole hosts", style.LEVELS[2]),
    "headroom_cost": ("headroom", "#2f7fc1"),
    "spread_cost": ("spread", "#9a63b5"),
    "empty_cost": ("empty", "#d97a1f"),
    "unused_cost": ("unused", style.LEVELS[3]),
}
"""Columns of cost_parts_means: what they are called, and their colour."""
_SHOWN = 2.5
"""Axes end at so many times the median bill: one that is far dearer would hide the others."""


def draw(rows: Sequence[Row]) -> str:
    """Means of the parts of the bill, from rows of cost_parts_means; nothing of too many cases.

    What is below 0 is left of it, so the number at the end of a bar is what was billed.
    """
    panels = grouped(rows, case_of)
    bars = {
        name: place for place, name in enumerate(sorted({controller_name(row) for row in rows}))
    }
    if not rows or len(panels) > MOST_PANELS or len(bars) > MOST_BARS:
        return ""
    columns = min(COLUMNS, len(panels))
    # Beside the bars there have to be titles of up to three lines, an axis and the legend.
    figure, axes = style.grid(-(-len(panels) // columns), columns, 0.17 * len(bars) + 1.2)
    for place, (axis, (case, case_rows)) in enumerate(zip(axes, panels.items(), strict=False)):
        style.titled(axis, _title(case))
        _bars(axis, case_rows, bars)
        names = [shorten(name, MOST_LETTERS, placeholder=" ...") for name in bars]
        axis.set_yticks(list(bars.values()), names if place % columns == 0 else [])
    for unused in axes[len(panels) :]:
        unused.set_visible(False)
    style.legend_above(axes[0], len(PARTS), fontsize=8, handlelength=1, columnspacing=1)
    return style.as_svg(figure, "bill", "The cost of the hosts of every controller, in its parts")


def _title(case: Case) -> str:
    topology, pattern, conditions, btu_min = case
    words = f"{topology}\n{pattern}, BTU {btu_min:g} min".replace("_", " ")
    return f"{words}\n{conditions}" if conditions else words


def _bars(axis: Axes, rows: Sequence[Row], bars: Mapping[str, int]) -> None:
    limit = _SHOWN * median(row["resource_cost"] for row in rows)
    at = [bars[controller_name(row)] for row in rows]
    right, left = [0.0] * len(rows), [0.0] * len(rows)
    for part, (label, colour) in PARTS.items():
        begins, ends = [], []
        for place, row in enumerate(rows):
            ends_at = right if row[part] >= 0 else left
            begins.append(min(ends_at[place], limit))
            ends_at[place] += row[part]
            ends.append(min(ends_at[place], limit))
        widths = [end - begin for begin, end in zip(begins, ends, strict=True)]
        axis.barh(at, widths, left=begins, color=colour, height=0.72, label=label)
    far = min(limit, max(right)) or 1.0
    for row, place, end in zip(rows, at, right, strict=True):
        billed = f"{row['resource_cost']:.1f}"
        x = min(end, limit) + 0.015 * far
        axis.text(x, place, billed, color=style.TEXT, fontsize=7, va="center")
    covers = {row["cover_cost"] for row in rows} - {None}
    for cover in covers:
        axis.axvline(cover, color=style.TEXT, linewidth=0.9, linestyle=(0, (3, 2)))
    axis.set_xlim(min([*left, 0.0]), 1.2 * far)
    axis.set_ylim(len(bars) - 0.4, -0.6)
    axis.tick_params(labelsize=8, length=0)
    axis.grid(visible=False, axis="y")
