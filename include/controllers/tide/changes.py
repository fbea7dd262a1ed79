"""What a change costs: what its pause makes late, over the time for which it is good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LASTS_S = 200.0
"""Time for which a change is good, at most: chosen (docs/notes/tide.md says on which data)."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """Cost of a start and of a stop by operator, in late items per second.

    What arrives in a pause is late, and so is what arrives until that is worked off: of a fluid
    at rate ``rate_per_s`` for ``pause_s`` n / (n - busy). Where all are late in any case, because
    there are no more instances than ``busy``, it is what arrives in the pause. Their number is
    spread over LASTS_S; more than everything in that time cannot be late. Arrays have the shape
    (operators,).
    """

    rate_per_s: Array
    busy: Array
    start_s: float
    stop_s: float
    job_s: float = 0.0
    """Pause of the whole job when anything starts or stops, however much does."""
    lasts_s: float = LASTS_S
    """Time until the job starts again for the next change."""

    def start(self, instances: Array) -> Array:
        """Of one more, where there are so many."""
        return self._late_per_s(self.start_s, instances + 1, instances)

    def stop(self, instances: Array) -> Array:
        """Of one fewer."""
        return self._late_per_s(self.stop_s, instances - 1, instances - 1)

    @property
    def piled_up(self) -> Array:
        """Items that wait at each operator after a pause."""
        return self.rate_per_s * max(self.start_s, self.stop_s, self.job_s)

    def without_piled_up(self, waiting: Array) -> Array:
        """Waiting items but those that a pause piles up, or each change would ask for the next."""
        return np.maximum(0.0, waiting - self.piled_up)

    def _late_per_s(self, pause_s: float, instances: Array, least: Array) -> Array:
        """``instances`` work it off, if ``least`` would not leave everything late."""
        spare = np.where(least > self.busy, instances - self.busy, instances)
        lasts_s = pause_s * np.maximum(instances, 1.0) / np.maximum(spare, 1e-9)
        return self.rate_per_s * np.minimum(1.0, lasts_s / LASTS_S)
