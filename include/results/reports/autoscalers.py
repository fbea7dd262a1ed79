"""A figure for every autoscaler in use today: one run of each, with the value that it watched.

``python -m include.results.reports.autoscalers docs/images/autoscalers`` draws them anew.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from include.controllers import CONTROLLERS
from include.controllers.base import Group, Watching
from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.files.whole import write_bytes
from include.results.reports.figures import autoscaler, style
from include.runs.session import Session
from include.testbeds.base import ACTS

PATTERN, BTU_MIN, SEED, DURATION_MIN = "random_walk_2", 10.0, 123, 120.0


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
    return autoscaler.draw(f"{controller}: {operator}", rule.watches, readings, duration_min)


def _spread(readings: Sequence[autoscaler.Reading]) -> int:
    """Between the most and the fewest instances: where it is largest, a rule shows what it does."""
    counts = [reading.instances for reading in readings]
    return max(counts) - min(counts)


def readings_of(spec: RunSpec, rule: Watching) -> Mapping[str, Sequence[autoscaler.Reading]]:
    """Every reading by operator, in a run whose sources follow one level; nothing is stored."""
    run = resolve(spec)
    session = Session.open(run)
    session.deploy()
    memories = session.memories
    (level,) = run.levels
    readings = defaultdict[str, list[autoscaler.Reading]](list)
    for turn in session.loop.run(memories, 0, spec.duration_s):
        if turn.acted is None:
            continue
        observation = turn.acted.observed
        for operator, sample in observation.operators.items():
            reading = autoscaler.Reading(
                minute=observation.now_s / 60,
                watched=rule.watched(memories[ACTS], observation, operator),
                instances=len(observation.serving(operator)),
                busy_instances=run.instances_per_level[operator] * level.at(observation.now_s),
                waiting_items=sample.waiting_items,
            )
            readings[operator].append(reading)
        memories = turn.memories
    return readings


def main(folder: Path) -> None:
    """Draw all of them to ``folder/<controller>.svg``."""
    for name, registered in CONTROLLERS.items():
        if registered.group is Group.IN_USE_TODAY:
            write_bytes(folder / f"{name}.svg", f"{style.standalone(figure_of(name))}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
