"""From an observation to what a filter takes in: section 2.1, feedback z and environment u."""

from __future__ import annotations

from itertools import chain
from operator import attrgetter

import numpy as np

from include.controllers.pvldb127.filters.base import Measured
from include.controllers.pvldb127.rules import Rule
from include.model.observation import Observation

_name = attrgetter("instance")


def measure(seen: Observation, rule: Rule, since_s: float) -> Measured | None:
    """The metrics of every ready instance that was read; None when there is none.

    An operator without any is left out: what was not measured is not zero. So is a metric that
    one of the instances lacks. ``since_s`` is how long ago the monitor counted before.
    """
    operators: list[str] = []
    starting: list[int] = []
    rates: list[float] = []
    names: list[str] = []
    owner: list[int] = []
    rows: list[tuple[float, ...]] = []
    for name, sample in sorted(seen.operators.items()):
        serving = seen.serving(name)
        ready = sorted((one for one in serving if one.ready), key=_name)
        read = rule.measure(sample, ready)
        found = [row for row in read if row is not None]
        if not found or since_s <= 0:
            continue
        names += [one.instance for one, row in zip(ready, read, strict=True) if row is not None]
        rows += found
        owner += [len(operators)] * len(found)
        operators.append(name)
        starting.append(len(serving) - len(ready))
        rates.append(sample.arrived_items / since_s)
    if not operators:
        return None
    metrics = min(map(len, rows))
    if metrics < max(map(len, rows)):
        rows = [row[:metrics] for row in rows]
    return Measured(
        t_s=seen.now_s,
        operators=tuple(operators),
        starting=np.array(starting, dtype=np.int64),
        rate=np.array(rates),
        instances=tuple(names),
        operator_of=np.array(owner, dtype=np.int64),
        z=np.array([*chain.from_iterable(rows)]).reshape(len(rows), metrics),
    )
