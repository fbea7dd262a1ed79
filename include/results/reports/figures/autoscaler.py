"""An autoscaler at one operator: the value that it watches, instances, and items that wait."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from include.controllers.base import Gauge
from include.results.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN = 5.0
"""Letters of a figure that is shown 480 pixels wide are twelve pixels high."""
BEYOND = 3.0
"""The axis of what is watched ends at so many times the highest bound."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of an operator: the watched value, instances that run, instances that the load
    keeps busy, and items that wait."""

    minute: float
    watched: Gauge | None
    instances: int
    busy_instances: float
    waiting_items: int


def draw(name: str, watches: str, readings: Sequence[Reading], length_min: float) -> str:
    """Three panels over the minutes of a run; ``name`` is that of controller and operator."""
    figure, axes = style.panels([1.5, 1.35, 1.2], WIDTH_IN)
    minutes = [reading.minute for reading in readings]
    _watched(axes[0], readings)
    running = [float(reading.instances) for reading in readings]
    waiting = [float(reading.waiting_items) for reading in readings]
    _area(axes[1], minutes, [reading.busy_instances for reading in readings], style.LOAD)
    _line(axes[1], minutes, running, color=style.INSTANCES, linewidth=1.5)
    _area(axes[2], minutes, waiting, style.WAITING)
    for axis, values in ((axes[1], running), (axes[2], waiting)):
        axis.set_ylim(0, style.up_to(values))
        style.whole(axis, 3)
    titles = (
        f"{name}: {watches}",
        "instances that run (line), that the load keeps busy (area)",
        "items that wait",
    )
    for axis, title in zip(axes, titles, strict=True):
        style.titled(axis, title)
        axis.grid(visible=False, axis="x")
    style.minutes(axes[-1], length_min)
    description = f"{name}: what is watched, instances that run, and items that wait"
    return style.as_svg(figure, f"autoscaler {name}", description)


def _watched(axis: Axes, readings: Sequence[Reading]) -> None:
    """The value as a line, its bounds dashed; a gap where the rule could say nothing."""
    minutes = [reading.minute for reading in readings]

    def watched(name: str) -> list[float]:
        of_gauges = (getattr(reading.watched, name, None) for reading in readings)
        return [math.nan if value is None else value for value in of_gauges]

    values, bounds = watched("value"), (watched("low"), watched("high"))
    for bound in bounds:
        _line(axis, minutes, bound, color=style.HOSTS, linewidth=0.9, linestyle=(0, (4, 2)))
    _line(axis, minutes, values, color=style.TEXT, linewidth=1.2)
    most, highest = _most(values), _most([value for bound in bounds for value in bound])
    axis.set_ylim(0, 1.08 * max(highest, min(most, BEYOND * highest or most)))
    axis.tick_params(labelsize=9)


def _most(values: Sequence[float]) -> float:
    return max((value for value in values if math.isfinite(value)), default=0.0)


def _line(axis: Axes, minutes: Sequence[float], values: Sequence[float], **look: object) -> None:
    axis.plot(*_turns(minutes, values), drawstyle="steps-post", **look)  # type: ignore[arg-type]


def _area(axis: Axes, minutes: Sequence[float], values: Sequence[float], colour: str) -> None:
    axis.fill_between(*_turns(minutes, values), step="post", color=colour, alpha=0.45, linewidth=0)


def _turns(minutes: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Where a value changes, and the last one: a figure without what lies on its lines."""
    kept = [
        place
        for place, value in enumerate(values)
        if place in (0, len(values) - 1) or value != values[place - 1]
    ]
    return [minutes[place] for place in kept], [values[place] for place in kept]
