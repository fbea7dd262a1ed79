"""Instances that each advisor of a run would have had, over those that there were."""

from __future__ import annotations

from functools import lru_cache

from include.results.reports.figures import style
from include.results.reports.figures.frame import Frame, area, framed, line, step_path
from include.results.tables.staged import Rows

_ACTUAL, _ADVISED = "actual_instances", "advised_instances"


def scale_of(rows: Rows, length_min: float) -> style.Scale:
    """Axes that fit the rows of `advisors_timeline` of one run, or of all that are compared.

    ``length_min`` is the length of the longest. All panels have the same axes.
    """
    highest = style.up_to(row[column] for row in rows for column in (_ACTUAL, _ADVISED))
    return style.Scale(length_min, ((0.0, highest),))


def draw(run: str, rows: Rows, scale: style.Scale) -> str:
    """One panel per advisor from the rows of `advisors_timeline` of one run, in time order;
    nothing of a run without advisors."""
    advisors = tuple(dict.fromkeys(row["advisor"] for row in rows))
    if not advisors:
        return ""
    frame = _frame(scale, advisors)
    shapes = [
        panel.holding(_lines([row for row in rows if row["advisor"] == advisor]))
        for panel, advisor in zip(frame.panels, advisors, strict=True)
    ]
    return frame.filled(run, shapes)


@lru_cache(maxsize=64)
def _frame(scale: style.Scale, advisors: tuple[str, ...]) -> Frame:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure, axes = style.panels([1.5] * len(advisors))
    for axis, advisor in zip(axes, advisors, strict=True):
        style.counted(axis, f"Operator instances: {advisor}", scale.limits[0])
    actual = Patch(color=style.INSTANCES, alpha=0.35, label="actual")
    style.legend(axes[0], [actual, Line2D([], [], color=style.HOSTS, label="recommended")])
    style.minutes(axes[-1], scale.length_min)
    return framed(figure, axes, "advice", "Recommended and actual instances over the minutes of")


def _lines(rows: Rows) -> str:
    """What there was as an area, what the advisor would have had as a line above it."""
    actual, advised = (
        [(row["time_s"] / 60, row[column]) for row in rows] for column in (_ACTUAL, _ADVISED)
    )
    there = area(style.INSTANCES, ".35", actual)
    return there + line(style.HOSTS, 1.5, step_path(advised))
