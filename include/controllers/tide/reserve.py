"""How many spare instances a testbed needs: late items counted beside the expected ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from include.controllers.tide.estimates import HORIZON_S, Array, Flow, TideMemory
from include.controllers.tide.loss import Loss
from include.model.observation import Observation

PRIOR_ITEMS = 1000.0
"""Late items, as many as expected, that count as seen before the run: chosen among 100, 300, 1000
(docs/notes/tide.md)."""
LEAST, MOST = 0.1, 4.0
"""Bounds of the factor."""
CALM_S = 15.0
"""After a start of the job items are late because of the pause."""


def compared(
    memory: TideMemory,
    observation: Observation,
    flow: Flow,
    loss: Loss,
    since_s: float,
) -> TideMemory:
    """Count late items of the last ``since_s`` seconds and those that ``loss`` expects.

    Only of operators that had as many ready instances before, and more than arrivals keep busy:
    what is late in a pause or an overload says nothing of spare instances. ``loss`` is of calm load
    and knows no factor yet. Counts fade with half-life HORIZON_S.
    """
    serving = {
        name: sum(instance.ready for instance in observation.serving(name))
        for name in observation.operators
    }
    instances = np.array([float(serving.get(name, 0)) for name in flow.names])
    done = loss.load.rate_per_s * since_s
    share = loss.share_late(instances)
    paused = observation.now_s - observation.job_started_s < max(CALM_S, since_s)
    keep = 0.5 ** (since_s / HORIZON_S)
    late, expected = dict(memory.late), dict(memory.expected_late)
    for name, sample in observation.operators.items():
        late[name] = late.get(name, 0.0) * keep
        expected[name] = expected.get(name, 0.0) * keep
        row = flow.row[name]
        steady = serving[name] == memory.serving.get(name) and instances[row] > loss.busy[row]
        if sample.late_share is not None and steady and not paused:
            late[name] += sample.late_share * float(done[row])
            expected[name] += float(share[row] * done[row])
    return replace(memory, late=late, expected_late=expected, serving=serving)


def reserve_of(memory: TideMemory, flow: Flow) -> Array:
    """Factor of the spare instances that are assumed, by operator; 1 before anything was seen."""
    late = np.array([memory.late.get(name, 0.0) for name in flow.names])
    expected = np.array([memory.expected_late.get(name, 0.0) for name in flow.names])
    return np.clip((late + PRIOR_ITEMS) / (expected + PRIOR_ITEMS), LEAST, MOST)
