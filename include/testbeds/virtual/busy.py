"""Busy shares of instances between two observations of the same observer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from include.testbeds.columns import numbered
from include.testbeds.snapshots import F64, I64

Shares = tuple[float, float]


@dataclass(slots=True)
class BusyMeter:
    """Adds up busy time since :meth:`begin_anew`; keeps the last shares until a new reading."""

    operators: int
    shares: list[Shares | None] = field(default_factory=list)
    """By operator: mean share of its instances and the highest; None without a ready instance."""
    unread: list[tuple[I64, I64, F64, F64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shares = self.shares or [None] * self.operators

    def read(self, operator: I64, instance: I64, busy_s: F64, there_s: F64) -> None:
        """Add a period: seconds that each instance worked, and could have worked."""
        could = there_s > 0
        if could.any():
            self.unread.append((operator[could], instance[could], busy_s[could], there_s[could]))

    def latest_shares(self) -> list[Shares | None]:
        """Shares since :meth:`begin_anew`; the previous ones without a reading since."""
        if self.unread:
            operator, instance, busy_s, there_s = map(
                np.concatenate, zip(*self.unread, strict=True)
            )
            numbers, row = numbered(instance)
            operator_of = np.zeros(len(numbers), dtype=np.int64)
            operator_of[row] = operator
            busy_s, there_s = np.bincount(row, busy_s), np.bincount(row, there_s)
            each = np.minimum(busy_s / there_s, 1.0)
            highest = np.zeros(self.operators)
            np.maximum.at(highest, operator_of, each)
            all_s = np.bincount(operator_of, there_s, self.operators)
            mean = np.bincount(operator_of, each * there_s, self.operators) / np.maximum(
                all_s, 1e-9
            )
            self.shares = [
                (round(share, 4), round(most, 4)) if s > 0 else None
                for share, most, s in zip(
                    mean.tolist(), highest.tolist(), all_s.tolist(), strict=True
                )
            ]
        return self.shares

    def begin_anew(self) -> None:
        self.unread = []


@dataclass(slots=True)
class Watch:
    """Counters of one observer at its last observation."""

    observed: I64
    """(2, operators): items that had arrived and that were completed."""
    recorded: I64
    """(2, operators): recorded items, and the late ones among them."""
    busy: BusyMeter

    @classmethod
    def begun(cls, operators: int) -> Watch:
        nothing = np.zeros((2, operators), dtype=np.int64)
        return cls(nothing, nothing.copy(), BusyMeter(operators))
