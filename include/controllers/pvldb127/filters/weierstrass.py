"""GW: the generalized Weierstrass transform of PVLDB 12(7), section 3.3, eq. 19."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from include.controllers.pvldb127.filters.base import F64, Estimate, History, Measured


@dataclass(frozen=True, slots=True)
class Weierstrass:
    """A Gaussian kernel over the past ``window_s``; ``variance_s2`` is t of eq. 19.

    Filters the average of an operator's instances. The transform is linear, so that is the
    average of their transforms for as long as they are the same.
    """

    variance_s2: float = 9.0
    window_s: float = 60.0
    counts: bool = False

    def initial(self) -> History:
        return History()

    def step(self, memory: History, measured: Measured) -> tuple[History, Estimate]:
        """Take in the averages. What has left the window is forgotten, and all when the number of
        metrics changes."""
        count = measured.count()
        averages = measured.total(measured.z) / count[:, None]
        before = memory.of if memory.metrics == measured.metrics else {}
        kept = dict(before)  # also of operators that were not measured now
        smooth = np.empty_like(averages)
        width = 1 + measured.metrics
        for i, name in enumerate(measured.operators):
            past = (*before.get(name, ()), measured.t_s, *averages[i].tolist())
            rows = np.array(past).reshape(-1, width)
            gone = int((measured.t_s - rows[:, 0] >= self.window_s).sum())
            kept[name] = past[gone * width :]
            smooth[i] = transform(rows[gone:, 0] - measured.t_s, rows[gone:, 1:], self.variance_s2)
        usable = np.ones(len(measured.operators), dtype=bool)
        return History(kept, measured.metrics), Estimate(smooth * count[:, None], usable)


def transform(x_s: F64, values: F64, variance_s2: float) -> F64:
    """The transform of ``values`` (n, metrics) that are ``x_s`` (n,) seconds old (x <= 0).

    Only the left side of the kernel is in effect, so its weights are scaled to add up to 1.
    """
    weights = kernel(x_s, variance_s2)
    smooth: F64 = weights @ values / weights.sum()
    return smooth


def kernel(x_s: F64 | Sequence[float], variance_s2: float) -> F64:
    """Eq. 19."""
    x = np.asarray(x_s, dtype=float)
    weights: F64 = np.exp(-(x**2) / (2 * variance_s2)) / math.sqrt(2 * math.pi * variance_s2)
    return weights
