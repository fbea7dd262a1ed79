"""Target tracking, as AWS Application Auto Scaling offers it for services."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from include.controllers.autoscalers.base import Autoscaler, Recommendation, target_of
from include.controllers.base import Gauge
from include.model.observation import Observation

LONG_AGO_S = -1e9

IN_BELOW = 0.9
"""Part of the target below which the alarm for a scale-in counts (AUTO-TRACKING)."""


@dataclass(frozen=True, slots=True)
class Alarms:
    """Of one operator: minutes in a row above and below, the last changes, and what there was
    before the last scale-out."""

    above: int = 0
    below: int = 0
    out_s: float = LONG_AGO_S
    changed_s: float = LONG_AGO_S
    before_out: int = 1


@dataclass(frozen=True, slots=True)
class TrackingMemory:
    """The alarms by operator."""

    of: Mapping[str, Alarms] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TargetTracking(Autoscaler):
    """Holds the share of time that instances work at ``target_share``.

    It scales out after ``out_periods`` looks in a row above the target, in after ``in_periods``
    below IN_BELOW of it. ``out_cooldown_s`` after a scale-out, what that has added counts as
    part of the next one; nothing is taken away ``in_cooldown_s`` after any change. How AWS computes
    the new capacity is not published: AUTO-TRACKING (deviations.md) says what is assumed.
    """

    interval_s: float = 60.0
    target_share: float = 0.5
    out_periods: int = 3
    in_periods: int = 15
    out_cooldown_s: float = 300.0
    in_cooldown_s: float = 300.0
    max_instances: int = 100

    watches = "time that instances work, %"
    may_be_zero = frozenset({"out_cooldown_s", "in_cooldown_s"})

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.target_share > 1:
            yield f"target_share must be a share of at most 1, got {self.target_share}"

    def initial_memory(self) -> TrackingMemory:
        return TrackingMemory()

    def targets(
        self, memory: TrackingMemory, seen: Observation
    ) -> tuple[TrackingMemory, dict[str, Recommendation]]:
        """Count the minutes of both alarms; act on the one that rings."""
        of, targets = dict(memory.of), dict[str, Recommendation]()
        for name in sorted(seen.operators):
            share, current = seen.operators[name].busy_share, len(seen.serving(name))
            if share is None or not current:
                continue  # what is missing changes no alarm
            alarms = self.rung(of.get(name, Alarms()), share)
            wanted = self.wanted(alarms, share, current, seen.now_s)
            if wanted > current:
                fresh = seen.now_s - alarms.out_s >= self.out_cooldown_s
                before = current if fresh else alarms.before_out
                alarms = replace(alarms, out_s=seen.now_s, before_out=before)
            if wanted != current:
                alarms = replace(alarms, changed_s=seen.now_s)
            of[name] = alarms
            detail = f"{name} works {share:.0%} of the time, the target is {self.target_share:.0%}"
            targets[name] = target_of(current, wanted, detail)
        return TrackingMemory(of), targets

    def watched(self, memory: TrackingMemory, seen: Observation, operator: str) -> Gauge | None:
        """The share against the two alarms."""
        sample = seen.operators.get(operator)
        if sample is None or sample.busy_share is None:
            return None
        high = 100 * self.target_share
        return Gauge(100 * sample.busy_share, high * IN_BELOW, high)

    def rung(self, alarms: Alarms, share: float) -> Alarms:
        """The alarms after one more period."""
        above = alarms.above + 1 if share > self.target_share else 0
        below = alarms.below + 1 if share < self.target_share * IN_BELOW else 0
        return replace(alarms, above=above, below=below)

    def wanted(self, alarms: Alarms, share: float, current: int, now_s: float) -> int:
        """In proportion to how far the share is from its target, rounded up."""
        cooling = now_s - alarms.out_s < self.out_cooldown_s
        if alarms.above >= self.out_periods:
            base = alarms.before_out if cooling else current
            out = math.ceil(base * share / self.target_share - 1e-9)
            return max(current, min(out, self.max_instances))
        if alarms.below >= self.in_periods and now_s - alarms.changed_s >= self.in_cooldown_s:
            return min(current, max(1, math.ceil(current * share / self.target_share - 1e-9)))
        return current
