"""What an autoscaler watches of an operator, what it does about it, and what waits meanwhile."""

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
    """An operator at one look: what the rule watched, the instances that run, those that the load
    keeps busy, and what waits."""

    minute: float
    watched: Gauge | None
    instances: int
    busy_instances: float
    waiting_items: int


def draw(name: str, watches: str, looks: Sequence[Reading], length_min: float) -> str:
    """Three panels over the minutes of a run; ``name`` is that of controller and operator."""
    figure, axes = style.panels([1.5, 1.35, 1.2], WIDTH_IN)
    minutes = [one.minute for one in looks]
    _watched(axes[0], looks)
    running = [float(one.instances) for one in looks]
    waiting = [float(one.waiting_items) for one in looks]
    _area(axes[1], minutes, [one.busy_instances for one in looks], style.LOAD)
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


def _watched(axis: Axes, looks: Sequence[Reading]) -> None:
    """The value as a line, its bounds dashed; a gap where the rule could say nothing."""
    minutes, seen = [one.minute for one in looks], [one.watched for one in looks]
    values = [one.value if one else math.nan for one in seen]
    bounds = [
        [_or_gap(one.low) if one else math.nan for one in seen],
        [_or_gap(one.high) if one else math.nan for one in seen],
    ]
    for bound in bounds:
        _line(axis, minutes, bound, color=style.HOSTS, linewidth=0.9, linestyle=(0, (4, 2)))
    _line(axis, minutes, values, color=style.TEXT, linewidth=1.2)
    most, highest = _most(values), _most([one for bound in bounds for one in bound])
    axis.set_ylim(0, 1.08 * max(highest, min(most, BEYOND * highest or most)))
    axis.tick_params(labelsize=9)


def _or_gap(bound: float | None) -> float:
    return math.nan if bound is None else bound


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
