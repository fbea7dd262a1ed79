"""What was scaled in every minute of a run: above the line what grew, below what shrank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from include.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INSTANCES = (
    ("upscaling", "upscaling", style.UP, 1),
    ("migrations", "migration", style.MOVED, 1),
    ("downscaling", "downscaling", style.DOWN, -1),
)
_HOSTS = (
    ("hosts_leased", "leased", style.UP, 1),
    ("hosts_prolonged", "prolonged", style.KEPT, 1),
    ("hosts_released", "released", style.DOWN, -1),
)


def scale_of(rows: Sequence[Mapping[str, Any]], length_min: float) -> style.Scale:
    """Axes that fit the rows of `scaling` of one run, or of all that are compared.

    ``length_min`` is the length of the longest.
    """
    limits = []
    for series in (_INSTANCES, _HOSTS):
        up, down = (
            style.up_to(
                sum(row[column] for column, _, _, sign in series if sign == side) for row in rows
            )
            for side in (1, -1)
        )
        limits.append((-down, up))
    return style.Scale(length_min, tuple(limits))


def draw(run: str, rows: Sequence[Mapping[str, Any]], scale: style.Scale) -> str:
    """Bars per minute from the rows of `scaling` of one run, in order of the minutes."""
    figure, (instances, hosts) = style.panels([1.9, 1.7])
    _bars(instances, rows, _INSTANCES)
    style.titled(instances, "Operator instances per minute")
    _bars(hosts, rows, _HOSTS)
    style.titled(hosts, "Hosts per minute")
    for axis, limits in zip((instances, hosts), scale.limits, strict=True):
        axis.set_ylim(*limits)
    style.minutes(hosts, scale.length_min)
    return style.as_svg(figure, f"scaling {run}", f"Scaling activity per minute of run {run}")


def _bars(
    axis: Axes,
    rows: Sequence[Mapping[str, Any]],
    series: Sequence[tuple[str, str, str, int]],
) -> None:
    from matplotlib.patches import Patch

    top = {(row["minute"], sign): 0 for row in rows for sign in (1, -1)}
    for column, _, colour, sign in series:
        heights = {row["minute"]: sign * row[column] for row in rows if row[column]}
        axis.bar(
            [minute + 0.5 for minute in heights],
            list(heights.values()),
            width=0.9,
            bottom=[top[minute, sign] for minute in heights],
            color=colour,
        )
        for minute, height in heights.items():
            top[minute, sign] += height
    axis.axhline(0, color=style.LOAD, linewidth=0.8)
    axis.grid(visible=False, axis="x")
    style.whole(axis)
    axis.legend(  # also of what did not happen in this run
        handles=[Patch(color=colour, label=label) for _, label, colour, _ in series],
        loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, labelcolor=style.TEXT,
        fontsize=9, handlelength=1, borderaxespad=0.2, columnspacing=1.4,
    )  # fmt: skip
