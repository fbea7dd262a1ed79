"""The HorizontalPodAutoscaler of Kubernetes on CPU (autoscaling/v2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from include.controllers.autoscalers.replicas import HpaMemory, Replicas, is_within
from include.controllers.base import Gauge
from include.model.observation import Observation


@dataclass(frozen=True, kw_only=True)
class Hpa(Replicas):
    """Holds the mean CPU utilisation of the instances at ``target_cpu``, a share from 0 to 1.

    Its ``behavior`` is that of the documentation, written out; None is an object without one.
    The rule is ``GetResourceReplicas`` of kubernetes, pkg/controller/podautoscaler/
    replica_calculator.go; docs/autoscalers.md says what ``behavior`` may be.
    """

    target_cpu: float = 0.8
    behavior: Mapping[str, Any] | None = field(default_factory=dict)

    watches = "CPU of ready instances, % of what they reserve"

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.target_cpu > 1:
            yield f"target_cpu must be a share of at most 1, got {self.target_cpu}"

    def watched(self, memory: HpaMemory, seen: Observation, operator: str) -> Gauge | None:
        """Mean CPU against the target and its tolerance."""
        shares = [one.cpu_share for one in seen.serving(operator) if one.ready]
        read = [share for share in shares if share is not None]
        target = 100 * self.target_cpu
        below, above = self.tolerances
        low, high = target * (1 - below), target * (1 + above)
        return Gauge(percent(read), low, high) if read else None

    def recommendation(self, operator: str, seen: Observation) -> tuple[int, str] | None:
        """By the CPU of instances that are ready; those that are not count as the rule says."""
        serving = seen.serving(operator)
        shares = [one.cpu_share for one in serving if one.ready]
        unready = len(serving) - len(shares)
        wanted = replicas(shares, unready, self.target_cpu, self.tolerances)
        if wanted is None:
            return None
        read = [share for share in shares if share is not None]
        detail = (
            f"{operator} uses {percent(read)} % of its CPU, the target is {self.target_cpu:.0%}: "
            f"{wanted} instances"
        )
        return wanted, detail


def percent(shares: Sequence[float]) -> int:
    """Mean utilisation as the metrics client gives it: a whole number, cut off."""
    return int(100 * sum(shares) / len(shares) + 1e-9)


def replicas(
    shares: Sequence[float | None],
    unready: int,
    target: float,
    tolerances: tuple[float, float],
) -> int | None:
    """Instances by the shares of those that are ready (None: not read); None when none was read.

    On the way down what was not read counts as fully used, on the way up it and what is not
    ready as idle. Neither turns the direction around.
    """
    read = [share for share in shares if share is not None]
    missing, current = len(shares) - len(read), len(shares) + unready
    if not read:
        return None
    wanted_percent = round(100 * target, 9)  # upstream's is a whole number
    usage = percent(read) / wanted_percent
    if not missing and not (unready and usage > 1):
        return current if is_within(usage, tolerances) else math.ceil(usage * len(read))
    if usage != 1:
        read += [0.0 if usage > 1 else 1.0] * missing
    if usage > 1:
        read += [0.0] * unready
    new = percent(read) / wanted_percent
    if is_within(new, tolerances) or (usage - 1) * (new - 1) < 0:
        return current
    wanted = math.ceil(new * len(read))
    return current if (wanted - current) * (new - 1) < 0 else wanted
