"""Dhalion: the policy for dynamic resource allocation of Heron (Floratou et al., VLDB 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from include.controllers.autoscalers.base import Autoscaler, Recommendation
from include.controllers.autoscalers.rates import Counts, Rate, rates_since
from include.controllers.base import Gauge
from include.model.decision import Reason, Why
from include.model.observation import Observation

MOST_MS = 999.0
"""``ScaleUpResolver``: a component cannot hold the others up for longer in a second."""
MOST_TIMES = 4.0
"""``ScaleUpResolver``: "do not scale more than 4 times the current size"."""


@dataclass(frozen=True, slots=True)
class DhalionMemory:
    """Counts of the last look, and until when it waits for what it did to show."""

    counts: Counts = field(default_factory=dict)
    waits_until_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Dhalion(Autoscaler):
    """Scales up the operator that holds up the others most; it never scales down.

    ``noise_ms`` is the back pressure, in milliseconds of a second, up to which nothing is wrong,
    and ``wait_s`` how long nothing is done after a change. A broker has no back pressure:
    :func:`held_up_ms` stands in for it.
    """

    interval_s: float = 60.0
    noise_ms: float = 20.0
    wait_s: float = 180.0

    watches = "back pressure, ms of a second"
    may_be_zero = frozenset({"noise_ms", "wait_s"})

    def initial_memory(self) -> DhalionMemory:
        return DhalionMemory()

    def targets(
        self, memory: DhalionMemory, seen: Observation
    ) -> tuple[DhalionMemory, dict[str, Recommendation]]:
        """Diagnose under-provisioning, and resolve it for one operator."""
        counts, rates = rates_since(memory.counts, seen)
        memory = DhalionMemory(counts, memory.waits_until_s)
        held_ms = {name: held_up_ms(one) for name, one in rates.items() if seen.serving(name)}
        if seen.now_s < memory.waits_until_s or max(held_ms.values(), default=0) <= self.noise_ms:
            return memory, {}
        worst = max(held_ms, key=lambda name: held_ms[name])
        current = len(seen.serving(worst))
        wanted = scaled_up(current, held_ms[worst])
        detail = f"{worst} would hold up the others for {held_ms[worst]:.0f} ms of a second"
        target = Recommendation(wanted, Why(Reason.QUEUE_LONG, detail))
        return DhalionMemory(counts, seen.now_s + self.wait_s), {worst: target}

    def watched(self, memory: DhalionMemory, seen: Observation, operator: str) -> Gauge | None:
        """Back pressure against what is taken for noise."""
        rate = rates_since(memory.counts, seen)[1].get(operator)
        return None if rate is None else Gauge(held_up_ms(rate), high=self.noise_ms)


def held_up_ms(rate: Rate) -> float:
    """Milliseconds of a second for which its senders would have had to stop so that the queue of
    an operator stayed as it was."""
    if rate.arrived_per_s <= 0:
        return 0.0
    return round(1000 * max(0.0, 1 - rate.completed_per_s / rate.arrived_per_s), 6)


def scaled_up(current: int, held_ms: float) -> int:
    """``computeScaleUpFactor``: more instances for the time in which nothing could be sent."""
    held_ms = min(held_ms, MOST_MS)
    return math.ceil(current * (1 + min(held_ms / (1000 - held_ms), MOST_TIMES)) - 1e-9)
