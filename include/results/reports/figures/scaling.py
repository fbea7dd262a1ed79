"""What was scaled in every minute of a run: above the line what grew, below what shrank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from include.results.reports.figures import style
from include.results.reports.figures.frame import Frame, framed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Series = Sequence[tuple[str, str, str, int]]
"""Column, label, colour, and whether it is drawn upwards or downwards."""

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
    frame = _frame(scale)
    return frame.filled(
        run,
        [
            panel.holding(_bars(rows, series))
            for panel, series in zip(frame.panels, (_INSTANCES, _HOSTS), strict=True)
        ],
    )


@lru_cache(maxsize=64)
def _frame(scale: style.Scale) -> Frame:
    figure, axes = style.panels([1.9, 1.7])
    titles = ("Operator instances per minute", "Hosts per minute")
    panels = zip(axes, (_INSTANCES, _HOSTS), titles, scale.limits, strict=True)
    for axis, series, title, limits in panels:
        _legend(axis, series)
        style.titled(axis, title)
        axis.set_ylim(*limits)
        axis.axhline(0, color=style.LOAD, linewidth=0.8)
        axis.grid(visible=False, axis="x")
        style.whole(axis)
    style.minutes(axes[-1], scale.length_min)
    return framed(figure, axes, "scaling", "Scaling activity per minute of run")


def _bars(rows: Sequence[Mapping[str, Any]], series: Series) -> str:
    top = {(row["minute"], sign): 0 for row in rows for sign in (1, -1)}
    shapes = ""
    for column, _, colour, sign in series:
        path = ""
        for row in rows:
            if row[column]:
                minute, height = row["minute"], sign * row[column]
                path += f"M{minute}.05 {top[minute, sign]}h.9v{height}h-.9z"
                top[minute, sign] += height
        shapes += f'<path fill="{colour}" d="{path}"/>' if path else ""
    return shapes


def _legend(axis: Axes, series: Series) -> None:
    """Also of what did not happen in a run."""
    from matplotlib.patches import Patch

    axis.legend(
        handles=[Patch(color=colour, label=label) for _, label, colour, _ in series],
        loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, labelcolor=style.TEXT,
        fontsize=9, handlelength=1, borderaxespad=0.2, columnspacing=1.4,
    )  # fmt: skip
