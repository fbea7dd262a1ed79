"""The threshold rule: how many instances an operator should have, given what a filter believes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from include.model.decision import Reason, Why
from include.model.observation import InstanceSample

METRICS = ("CPU", "memory")


@dataclass(frozen=True, slots=True)
class InstanceChange:
    """Instances more or, below 0, fewer, and why."""

    count: int
    why: Why


@dataclass(frozen=True, slots=True)
class Utilisation:
    """PVLDB 12(7), section 3.3: up when the average of any metric is above, down when all are
    below. Shares are of one core and of an instance's memory; an estimate may exceed 1.
    """

    scale_up_above: float = 0.80
    scale_down_below: float = 0.45
    aim_between: float = 0.5
    """Where from the lower (0) to the upper threshold (1) a counting filter wants the average."""

    @property
    def aim_at(self) -> float:
        """The average that a counting filter provides instances for."""
        return self.scale_down_below + self.aim_between * (
            self.scale_up_above - self.scale_down_below
        )

    def problems(self) -> Iterator[str]:
        if not 0 <= self.scale_down_below < self.scale_up_above:
            yield (
                f"scale_down_below ({self.scale_down_below:g}) must be below scale_up_above "
                f"({self.scale_up_above:g}) and not negative"
            )
        if not 0 < self.aim_between <= 1:
            yield f"aim_between must be above 0 and at most 1, got {self.aim_between:g}"

    def judge(self, total: Sequence[float], instances: int, *, counts: bool) -> InstanceChange:
        """One more or fewer, or as many as the highest total needs.

        ``total`` of each metric over the ``instances``, those that start included. With ``counts``
        the totals are estimates that tell how many instances are needed.
        """
        averages = [value / instances for value in total]
        needed = math.ceil(max(total) / self.aim_at - 1e-9)
        highest = max(range(len(averages)), key=lambda i: averages[i])
        reading = f"{METRICS[highest]} {averages[highest]:.2f} on average"
        if averages[highest] > self.scale_up_above:
            change = max(1, needed - instances) if counts else 1
            detail, reason = f" is above {self.scale_up_above:g}", Reason.UTILISATION_HIGH
        elif averages[highest] < self.scale_down_below:
            change = min(0, needed - instances) if counts else -1
            detail = f", nothing is above {self.scale_down_below:g}"
            reason = Reason.UTILISATION_LOW
        else:
            change, detail, reason = 0, "", Reason.NOTHING_TO_DO
        more = f"; {needed} needed" if counts else ""
        why = Why(reason, f"{reading} of {instances}{detail}{more}")
        return InstanceChange(max(change, 1 - instances), why)


def metrics_of(instance: InstanceSample) -> tuple[float, ...] | None:
    """CPU, and memory where it is measured; None where the monitor could not read the instance."""
    cpu, memory = instance.cpu_share, instance.memory_share
    if cpu is None:
        return None
    return (cpu,) if memory is None else (cpu, memory)
