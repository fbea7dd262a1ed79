"""What a change costs: items that its pause makes late, in the time for which it is good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from include.controllers.tide.estimates import Array
from include.controllers.tide.loss import Loss

LASTS_S = 200.0
"""Time for which a change is good, at most: chosen (docs/notes/tide.md says on which data)."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """What stands still when instances start or stop: their operator, or the whole job.

    However many start or stop in one decision, it is counted as one pause. Arrays have the shape
    (operators,).
    """

    rate_per_s: Array
    waiting: Array
    """Waiting items that the instances could work on."""
    change_s: Array | float = 0.0
    """Pause of an operator when instances of it start or stop."""
    job_s: float = 0.0
    """Pause of the whole job when anything starts or stops."""
    lasts_s: float = LASTS_S
    """Time for which a change is good: until the job starts for the next one, or LASTS_S."""

    @property
    def exist(self) -> bool:
        """Whether a change stops anything."""
        return self.of_operators or self.job_s > 0

    @property
    def of_operators(self) -> bool:
        """Whether a change stops its operator."""
        return bool(np.any(self.change_s))

    @property
    def waiting_without(self) -> Array:
        """Waiting items but those that a pause piles up, or each change would ask for the next."""
        pause_s = np.maximum(self.change_s, self.job_s)
        return np.maximum(0.0, self.waiting - self.rate_per_s * pause_s)

    def saved(self, loss: Loss, before: Array, after: Array) -> Array:
        """Late items by operator that ``after`` in place of ``before`` instances save.

        Less those of the pause; below 0 where more are late.
        """
        pause_s = np.maximum(np.where(after != before, self.change_s, 0.0), self.job_s)
        late_before = loss.late_in(self.lasts_s, before, self.waiting)
        return late_before - self._late(loss, after, self.waiting, pause_s)

    def cost_per_s(self, loss: Loss, instances: Array, pause_s: Array | float) -> Array:
        """Items by operator that a pause makes late, spread over the time that a change lasts."""
        calm = np.zeros_like(self.waiting)
        if not np.any(pause_s):
            return calm
        without = loss.late_in(self.lasts_s, instances, calm)
        return (self._late(loss, instances, calm, calm + pause_s) - without) / self.lasts_s

    def _late(self, loss: Loss, instances: Array, waiting: Array, pause_s: Array) -> Array:
        """What arrives in the pause, and what is late in the time that is left after it."""
        paused = self.rate_per_s * pause_s
        left_s = np.maximum(0.0, self.lasts_s - pause_s)
        late = loss.late_in(left_s, instances, waiting + paused)
        return loss.load.counts * paused + late


def pauses_of(names: Sequence[str], seen: Mapping[str, tuple[int, float]]) -> Array:
    """Pause of each operator, from how often operators paused so far, and for how long in all.

    One whose instances came or went without a pause has none; the others have the mean of all.
    """
    times = sum(times for times, _ in seen.values())
    mean_s = sum(paused_s for _, paused_s in seen.values()) / max(1, times)
    return np.array([mean_s if seen.get(name, (1, 0.0))[0] else 0.0 for name in names])
