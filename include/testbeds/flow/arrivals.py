"""What the sources publish, step by step, as cumulative micro-items."""

from __future__ import annotations

import numpy as np

from include.testbeds.base import TestbedConfig
from include.testbeds.flow.arrays import F64, I64, MICRO
from include.testbeds.flow.calibration import FlowCalibration
from include.testbeds.virtual.draws import Draws
from include.workloads.pattern import Levels

BLOCK = 1024


def published(
    config: TestbedConfig, calibration: FlowCalibration, step_us: int, draws: Draws
) -> I64:
    """Micro-items each source has published when each step begins. Shape (steps + 1, sources)."""
    topology, step_s = config.topology, step_us / 1e6
    steps = -(-round(config.duration_s * 1e6) // step_us)
    columns = []
    for source in topology.sources:
        amount = amounts(config.levels_of[source.name], config.duration_s, steps, step_s)
        amount *= source.items_per_level / topology.emission_period_s
        if calibration.fluctuation_cv:
            amount *= fluctuation(draws, source.name, calibration, steps, step_s)
        columns.append(np.rint(np.concatenate([[0.0], np.cumsum(amount)]) * MICRO))
    return np.array(columns, dtype=np.int64).T.copy()


def amounts(levels: Levels, end_s: float, steps: int, step_s: float) -> F64:
    """The integral of the level over each step, up to ``end_s``. Shape (steps,)."""
    pieces = np.array(list(levels.pieces(end_s))).reshape(-1, 3)
    starts_s, ends_s, level = pieces.T
    total = np.concatenate([[0.0], np.cumsum((ends_s - starts_s) * level)])
    bounds_s = np.concatenate([starts_s, ends_s[-1:]])
    if not starts_s.size:
        return np.zeros(steps)
    return np.diff(np.interp(np.arange(steps + 1) * step_s, bounds_s, total))


def fluctuation(
    draws: Draws, source: str, calibration: FlowCalibration, steps: int, step_s: float
) -> F64:
    """What the rate of a source is multiplied by in each step: gamma distributed, mean 1."""
    periods = int(steps * step_s // calibration.fluctuation_s) + 1
    shape = 1 / calibration.fluctuation_cv**2
    blocks = [
        draws.generator("fluctuation", source, block).standard_gamma(shape, BLOCK) / shape
        for block in range(-(-periods // BLOCK))
    ]
    of_period = (np.arange(steps) * step_s // calibration.fluctuation_s).astype(int)
    return np.asarray(np.concatenate(blocks)[of_period])
