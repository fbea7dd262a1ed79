"""What a change costs: what its pause makes late, over the time until the next change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from include.model.observation import Observation

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Changes:
    """How long it takes until an operator is changed again: sums that fade.

    ``watched_s``: seconds of observation; ``made``: observations at which an operator has other
    instances than at the one before; ``there``: its instances then.
    """

    seen_s: float = -1.0
    watched_s: float = 0.0
    made: Mapping[str, float] = field(default_factory=dict)
    there: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def updated(self, observation: Observation, half_life_s: float) -> Changes:
        """With what has changed since the last observation."""
        there: dict[str, tuple[str, ...]] = {}
        for instance in observation.instances.values():
            if not instance.stopping:
                before = there.get(instance.operator, ())
                there[instance.operator] = (*before, instance.instance)
        if self.seen_s < 0:
            return Changes(seen_s=observation.now_s, there=there)
        since_s = observation.now_s - self.seen_s
        keep = 0.5 ** (since_s / half_life_s)
        return Changes(
            seen_s=observation.now_s,
            watched_s=self.watched_s * keep + since_s,
            made={
                name: self.made.get(name, 0.0) * keep
                + ({*there.get(name, ())} != {*self.there.get(name, ())})
                for name in {**self.there, **there}
            },
            there=there,
        )

    def last_s(self, operator: str, presumed_s: float) -> float:
        """Mean time from one change to the next; one per ``presumed_s`` before any was seen."""
        return (presumed_s + self.watched_s) / (1.0 + self.made.get(operator, 0.0))


@dataclass(frozen=True, slots=True)
class Pauses:
    """Cost of a start and of a stop by operator, in late items per second.

    What arrives in a pause is late, and so is what arrives until that is worked off: of a fluid
    at rate ``rate_per_s`` for ``pause_s`` n / (n - busy). Their number is spread over ``last_s``,
    the time for which the change is good; more than everything in that time cannot be late.
    Arrays have the shape (operators,).
    """

    rate_per_s: Array
    busy: Array
    last_s: Array
    start_s: float
    stop_s: float

    def start(self, instances: Array) -> Array:
        """Of one more, where there are so many."""
        return self._late_per_s(self.start_s, instances + 1)

    def stop(self, instances: Array) -> Array:
        """Of one fewer."""
        return self._late_per_s(self.stop_s, instances - 1)

    def _late_per_s(self, pause_s: float, instances: Array) -> Array:
        if not pause_s:
            return np.zeros_like(self.rate_per_s)
        spare = np.maximum(instances - self.busy, 1e-9)
        lasts_s = pause_s * np.maximum(instances, 1.0) / spare
        return self.rate_per_s * np.minimum(1.0, lasts_s / self.last_s)
