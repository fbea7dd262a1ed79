"""Load, hosts, instances and waiting items over a run, as in Figs. 8-11 of PeerJ CS 141."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from include.results.reports.figures import style
from include.results.reports.figures.frame import Frame, area, beyond, framed, line, step_path

_PANELS = (
    ("level_machines", "Load: machines that publish", style.LOAD, 1.05),
    ("hosts", "Hosts leased", style.HOSTS, 1.05),
    ("instances", "Operator instances", style.INSTANCES, 1.35),
    ("waiting_items", "Items waiting in all queues", style.WAITING, 1.35),
)


def scale_of(rows: Sequence[Mapping[str, Any]], length_min: float) -> style.Scale:
    """Axes that fit the rows of `timeline` of one run, or of most that are compared.

    ``length_min`` is the length of the longest.
    """
    tops = (style.up_to_most(rows, itemgetter(name)) for name, *_ in _PANELS)
    return style.Scale(length_min, tuple((0.0, top) for top in tops))


def draw(run: str, rows: Sequence[Mapping[str, Any]], scale: style.Scale) -> str:
    """One panel per quantity from the rows of `timeline` of one run, in time order."""
    frame, shapes = _frame(scale), list[str]()
    for panel, (column, _, colour, _), (_, top) in zip(
        frame.panels, _PANELS, scale.limits, strict=True
    ):
        points = [(row["time_s"] / 60, row[column]) for row in rows if row[column] is not None]
        if points:
            steps = [(minute, min(value, top)) for minute, value in points]
            below = area(colour, ".22", steps)
            shapes.append(panel.holding(below + line(colour, 1.5, step_path(steps))))
            furthest = max(value for _, value in points)
            shapes.append(beyond(panel, scale.length_min, top, furthest))
    return frame.filled(run, shapes)


@lru_cache(maxsize=64)
def _frame(scale: style.Scale) -> Frame:
    figure, axes = style.panels([height for *_, height in _PANELS])
    for axis, (_, title, _, _), limits in zip(axes, _PANELS, scale.limits, strict=True):
        style.counted(axis, title, limits)
    style.minutes(axes[-1], scale.length_min)
    description = "Load, hosts, operator instances and waiting items over the minutes of run"
    return framed(figure, axes, "timeline", description)
