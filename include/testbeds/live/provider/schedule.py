"""When a source emits which item: the same times as in the simulator, one by one."""

from __future__ import annotations

import math
from bisect import bisect_right

from include.workloads.pattern import Levels


class Schedule:
    """Item k is emitted when the integral of the rate reaches k; numbers count from 0."""

    def __init__(self, levels: Levels, per_level_s: float, duration_s: float) -> None:
        self._firsts: list[int] = []
        self._pieces: list[tuple[float, float, float, float]] = []
        """(start_s, items due at the start, items per second, level)"""
        due = 0.0
        for start_s, end_s, level in levels.pieces(duration_s):
            self._firsts.append(math.ceil(due))
            self._pieces.append((start_s, due, level * per_level_s, level))
            # Rounded so that 124.99999999 does not emit what 125 would not.
            due = round(due + (end_s - start_s) * level * per_level_s, 9)
        self.items = math.ceil(due)
        self._starts_s = [piece[0] for piece in self._pieces]

    def due_s(self, number: int) -> float:
        """The second of the run at which an item is emitted; it must be below ``items``."""
        start_s, due, rate, _ = self._pieces[bisect_right(self._firsts, number) - 1]
        return start_s + (number - due) / rate

    def level_of(self, number: int) -> float:
        """The level at the time of an item."""
        return self._pieces[bisect_right(self._firsts, number) - 1][3]

    def due_by(self, t_s: float) -> int:
        """How many items are emitted up to a second of the run."""
        i = bisect_right(self._starts_s, t_s) - 1
        if i < 0:
            return 0
        start_s, due, rate, _ = self._pieces[i]
        after = self._firsts[i + 1] if i + 1 < len(self._firsts) else self.items
        return min(after, max(self._firsts[i], math.floor(due + (t_s - start_s) * rate + 1e-9) + 1))
