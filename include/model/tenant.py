"""Tenants of a shared cluster and what each of them intends (Henge, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A service level objective on latency, juice or both, worth ``max_utility`` when met.

    ``tail`` puts the latency threshold on the 95th percentile instead of the mean. ``points``
    replace the knee below the threshold by a monotone piecewise linear function of the user:
    pairs of (achieved share of the threshold, share of the maximal utility), both from 0 to 1.
    """

    max_utility: float = 1.0
    latency_ms: float | None = None
    juice: float | None = None
    tail: bool = False
    points: tuple[tuple[float, float], ...] = ()

    def problems(self) -> Iterator[str]:
        """Everything wrong with the intent, each with what to do."""
        if self.max_utility <= 0:
            yield f"max_utility must be above 0, got {self.max_utility:g}"
        if self.latency_ms is None and self.juice is None:
            yield "an intent needs latency_ms, juice or both"
        if self.latency_ms is not None and self.latency_ms <= 0:
            yield f"latency_ms must be above 0, got {self.latency_ms:g}"
        if self.juice is not None and not 0 < self.juice <= 1:
            yield f"juice must be above 0 and at most 1, got {self.juice:g}"
        shares = [value for point in self.points for value in point]
        if any(not 0 <= share <= 1 for share in shares):
            yield "points must lie between 0 and 1"
        if list(self.points) != sorted(self.points) or [y for _, y in self.points] != sorted(
            y for _, y in self.points
        ):
            yield "points must rise: a better value may never be worth less"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One job or query: the operators and sources that carry its name, and its intent if any.

    It joins the cluster at ``joins_s`` seconds into the run; before that nothing of it arrives.
    """

    name: str
    intent: Intent | None = None
    joins_s: float = 0.0
