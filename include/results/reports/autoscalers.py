"""A figure for every autoscaler in use today: one run of each, with the value that it watched.

``python -m include.results.reports.autoscalers docs/images/autoscalers`` draws them anew.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from include.controllers import CONTROLLERS
from include.controllers.base import Gauge, Group, Watching
from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.files.whole import write_bytes
from include.results.reports.figures import style
from include.runs.session import Session
from include.testbeds.base import ACTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PATTERN, BTU_MIN, SEED, DURATION_MIN = "random_walk_2", 10.0, 123, 120.0
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


def figure_of(controller: str, duration_min: float = DURATION_MIN) -> str:
    """The SVG of one controller. Raises TypeError for one that does not show what it watches."""
    spec = RunSpec(
        experiment="figure",
        controller=controller,
        pattern=PATTERN,
        btu_min=BTU_MIN,
        seed=SEED,
        topology="manufacturing",
        duration_min=duration_min,
    )
    rule = resolve(spec).build_controller()
    if not isinstance(rule, Watching):
        raise TypeError(f"{controller} does not show what it watches")
    operator, readings = max(readings_of(spec, rule).items(), key=lambda item: _spread(item[1]))
    return draw(f"{controller}: {operator}", rule.watches, readings, duration_min)


def _spread(readings: Sequence[Reading]) -> int:
    """Between the most and the fewest instances: where it is largest, a rule shows what it does."""
    counts = [reading.instances for reading in readings]
    return max(counts) - min(counts)


def readings_of(spec: RunSpec, rule: Watching) -> Mapping[str, Sequence[Reading]]:
    """Every reading by operator, in a run whose sources follow one level; nothing is stored."""
    run = resolve(spec)
    session = Session.open(run)
    session.deploy()
    memories = session.memories
    (level,) = run.levels
    readings = defaultdict[str, list[Reading]](list)
    for turn in session.loop.turns(memories, 0, spec.duration_s):
        if turn.acted is None:
            continue
        observation = turn.acted.observed
        for operator, sample in observation.operators.items():
            reading = Reading(
                minute=observation.now_s / 60,
                watched=rule.watched(memories[ACTS], observation, operator),
                instances=len(observation.serving(operator)),
                busy_instances=run.instances_per_level[operator] * level.at(observation.now_s),
                waiting_items=sample.waiting_items,
            )
            readings[operator].append(reading)
        memories = turn.memories
    return readings


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


def main(folder: Path) -> None:
    """Draw all of them to ``folder/<controller>.svg``."""
    for name, registered in CONTROLLERS.items():
        if registered.group is Group.IN_USE_TODAY:
            write_bytes(folder / f"{name}.svg", f"{style.standalone(figure_of(name))}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
