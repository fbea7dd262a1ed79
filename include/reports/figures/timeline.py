"""Load, hosts, instances and waiting items over a run, as in Figs. 8-11 of PeerJ CS 141."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from include.reports.figures import style

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
    figure, axes = style.panels([height for *_, height in _PANELS])
    shown = zip(axes, _PANELS, scale.limits, strict=True)
    for axis, (column, title, colour, _), limits in shown:
        seen = _changes([row for row in rows if row[column] is not None], column)
        at_min = [row["time_s"] / 60 for row in seen]
        values = [row[column] for row in seen]
        axis.fill_between(at_min, values, step="post", color=colour, alpha=0.22, linewidth=0)
        axis.plot(at_min, values, drawstyle="steps-post", color=colour, linewidth=1.5)
        style.titled(axis, title)
        axis.set_ylim(*limits)
        style.whole(axis)
        axis.grid(visible=False, axis="x")
    style.minutes(axes[-1], scale.length_min)
    return style.as_svg(
        figure,
        f"timeline {run}",
        f"Load, hosts, operator instances and waiting items over the minutes of run {run}",
    )


def _changes(rows: Sequence[Mapping[str, Any]], column: str) -> list[Mapping[str, Any]]:
    """The rows in which the step line turns, and the ends: the same picture in fewer bytes."""
    inner = [row for before, row in pairwise(rows) if row[column] != before[column]]
    return [*rows[:1], *inner, *rows[-1:]]
