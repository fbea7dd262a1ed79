"""Threshold rules: how many instances an operator should have, given what a filter believes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from include.model.decision import Reason, Why
from include.model.observation import InstanceSample, OperatorSample

METRICS = ("CPU", "memory")


@dataclass(frozen=True, slots=True)
class InstanceChange:
    """Instances more or, below 0, fewer, and why."""

    count: int
    why: Why


class Rule(Protocol):
    """What is measured of an instance, and what follows from its sum over the instances."""

    def problems(self) -> Iterator[str]:
        """Thresholds that make no sense, each with what to do."""
        ...

    def measure(
        self, sample: OperatorSample, ready: Sequence[InstanceSample]
    ) -> list[tuple[float, ...] | None]:
        """The metrics of every ready instance; None where the monitor could not read it."""
        ...

    def judge(self, total: Sequence[float], instances: int, *, counts: bool) -> InstanceChange:
        """``total`` of each metric over the ``instances``, those that start included.

        With ``counts`` the totals are estimates that tell how many instances are needed.
        """
        ...


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

    def measure(
        self, sample: OperatorSample, ready: Sequence[InstanceSample]
    ) -> list[tuple[float, ...] | None]:
        """CPU, and memory where it is measured."""
        return [
            None
            if one.cpu_share is None
            else (one.cpu_share,)
            if one.memory_share is None
            else (one.cpu_share, one.memory_share)
            for one in ready
        ]

    def judge(self, total: Sequence[float], instances: int, *, counts: bool) -> InstanceChange:
        """One more or fewer, or as many as the highest total needs."""
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


@dataclass(frozen=True, slots=True)
class Waiting:
    """The threshold baseline of PeerJ CS 141 on the number of waiting items."""

    scale_up_above_items: float = 250
    scale_up_twice_above_items: float = 1250
    scale_down_below_items: float = 1

    def problems(self) -> Iterator[str]:
        limits = (
            self.scale_down_below_items, self.scale_up_above_items, self.scale_up_twice_above_items,
        )  # fmt: skip
        if list(limits) != sorted(limits):
            yield (
                "scale_down_below_items, scale_up_above_items and scale_up_twice_above_items must "
                f"rise, got {limits}"
            )

    def measure(
        self, sample: OperatorSample, ready: Sequence[InstanceSample]
    ) -> list[tuple[float, ...] | None]:
        """The instance's part of what waits for the operator."""
        return [(sample.waiting_items / len(ready),)] * len(ready)

    def judge(self, total: Sequence[float], instances: int, *, counts: bool) -> InstanceChange:
        """One or two more, or one fewer."""
        waiting = total[0]
        if waiting > self.scale_up_above_items:
            more = 2 if waiting > self.scale_up_twice_above_items else 1
            detail = f"{waiting:.0f} > {self.scale_up_above_items:g} items wait"
            return InstanceChange(more, Why(Reason.QUEUE_LONG, detail))
        if waiting < self.scale_down_below_items:
            detail = f"{waiting:.0f} < {self.scale_down_below_items:g} items wait"
            return InstanceChange(-min(1, instances - 1), Why(Reason.QUEUE_SHORT, detail))
        return InstanceChange(0, Why(Reason.NOTHING_TO_DO, f"{waiting:.0f} items wait"))
