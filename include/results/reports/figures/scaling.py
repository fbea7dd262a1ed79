"""What was scaled in every minute of a run: above the line what grew, below what shrank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from include.results.reports.figures import style
from include.results.reports.figures.frame import Frame, beyond, framed
from include.results.tables.staged import Rows

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


def scale_of(rows: Rows, length_min: float) -> style.Scale:
    """Axes that fit the rows of `scaling` of one run, or of most that are compared.

    ``length_min`` is the length of the longest.
    """
    limits = []
    for series in (_INSTANCES, _HOSTS):
        up, down = (style.up_to_most(rows, partial(_sum, series, side)) for side in (1, -1))
        limits.append((-down, up))
    return style.Scale(length_min, tuple(limits))


def draw(run: str, rows: Rows, scale: style.Scale) -> str:
    """Bars per minute from the rows of `scaling` of one run, in order of the minutes."""
    frame, shapes = _frame(scale), list[str]()
    for panel, series, limits in zip(frame.panels, (_INSTANCES, _HOSTS), scale.limits, strict=True):
        shapes.append(panel.holding(_bars(rows, series, limits)))
        for edge, side in zip(limits, (-1, 1), strict=True):
            furthest = max((_sum(series, side, row) for row in rows), default=0)
            shapes.append(beyond(panel, scale.length_min, edge, furthest))
    return frame.filled(run, shapes)


def _sum(series: Series, side: int, row: Mapping[str, Any]) -> int:
    """How high the bars of a minute are together, above the line (1) or below it (-1)."""
    return sum(row[column] for column, _, _, sign in series if sign == side)


@lru_cache(maxsize=64)
def _frame(scale: style.Scale) -> Frame:
    from matplotlib.patches import Patch

    figure, axes = style.panels([1.9, 1.7])
    titles = ("Operator instances per minute", "Hosts per minute")
    panels = zip(axes, (_INSTANCES, _HOSTS), titles, scale.limits, strict=True)
    for axis, series, title, limits in panels:
        # Also of what did not happen in a run.
        style.legend(axis, [Patch(color=colour, label=label) for _, label, colour, _ in series])
        style.counted(axis, title, limits)
        axis.axhline(0, color=style.LOAD, linewidth=0.8)
    style.minutes(axes[-1], scale.length_min)
    return framed(figure, axes, "scaling", "Scaling activity per minute of run")


def _bars(rows: Rows, series: Series, limits: tuple[float, float]) -> str:
    """Bars on each other, which end where the axis does."""
    low, high = limits
    top = {(row["minute"], sign): 0.0 for row in rows for sign in (1, -1)}
    shapes = ""
    for column, _, colour, sign in series:
        path = ""
        for row in rows:
            begin = top[row["minute"], sign]
            end = min(max(begin + sign * row[column], low), high)
            if end != begin:
                height = f"{end - begin:g}"
                path += f"M{row['minute']}.05 {begin:g}h.9v{height}h-.9z"
                top[row["minute"], sign] = end
        shapes += f'<path fill="{colour}" d="{path}"/>' if path else ""
    return shapes
