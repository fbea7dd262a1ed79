"""PURE: no filter at all, the baseline of PVLDB 12(7), section 3.3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.controllers.pvldb127.filters.base import Estimate, Measured
from include.controllers.pvldb127.filters.memory import NothingKept


@dataclass(frozen=True, slots=True)
class Pure:
    """The identity function."""

    counts: bool = False

    def initial(self) -> NothingKept:
        return NothingKept()

    def step(self, memory: NothingKept, measured: Measured) -> tuple[NothingKept, Estimate]:
        usable = np.ones(len(measured.operators), dtype=bool)
        return memory, Estimate(measured.total(measured.z), usable)
