"""Load, hosts, instances and waiting items over a run, as in Figs. 8-11 of PeerJ CS 141."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from include.results.reports.figures import style
from include.results.reports.figures.frame import Frame, framed, step_path

_PANELS = (
    ("level_machines", "Load: machines that publish", style.LOAD, 1.05),
    ("hosts", "Hosts leased", style.HOSTS, 1.05),
    ("instances", "Operator instances", style.INSTANCES, 1.35),
    ("waiting_items", "Items waiting in all queues", style.WAITING, 1.35),
)


def scale_of(rows: Sequence[Mapping[str, Any]], length_min: float) -> style.Scale:
    """Axes that fit the rows of `timeline` of one run, or of all that are compared.

    ``length_min`` is the length of the longest.
    """
    columns = ([row[name] for row in rows if row[name] is not None] for name, *_ in _PANELS)
    return style.Scale(length_min, tuple((0.0, style.up_to(values)) for values in columns))


def draw(run: str, rows: Sequence[Mapping[str, Any]], scale: style.Scale) -> str:
    """One panel per quantity from the rows of `timeline` of one run, in time order."""
    frame = _frame(scale)
    return frame.filled(
        run,
        [
            panel.holding(_area(rows, column, colour))
            for panel, (column, _, colour, _) in zip(frame.panels, _PANELS, strict=True)
        ],
    )


@lru_cache(maxsize=64)
def _frame(scale: style.Scale) -> Frame:
    figure, axes = style.panels([height for *_, height in _PANELS])
    for axis, (_, title, _, _), limits in zip(axes, _PANELS, scale.limits, strict=True):
        style.titled(axis, title)
        axis.set_ylim(*limits)
        style.whole(axis)
        axis.grid(visible=False, axis="x")
    style.minutes(axes[-1], scale.length_min)
    description = "Load, hosts, operator instances and waiting items over the minutes of run"
    return framed(figure, axes, "timeline", description)


def _area(rows: Sequence[Mapping[str, Any]], column: str, colour: str) -> str:
    """A step line over minutes, and the area below it."""
    points = [(row["time_s"] / 60, row[column]) for row in rows if row[column] is not None]
    if not points:
        return ""
    begin_min, end_min = points[0][0], points[-1][0]
    line = f"{step_path(points)}H{end_min:g}"
    return (
        f'<path fill="{colour}" fill-opacity=".22" d="{line}V0H{begin_min:g}Z"/>'
        f'<path fill="none" stroke="{colour}" stroke-width="1.5" '
        f'vector-effect="non-scaling-stroke" d="{line}"/>'
    )
