"""Publication times of items: evenly spaced, computed by number, or random, which are stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.testbeds.simulated.kernel import BLOCK, NEVER
from include.workloads.pattern import Levels

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Publications:
    """Items of a source, spread evenly: item k is published when the integral of the rate is k.

    Stores the pieces of constant level only.
    """

    first: I64
    """(pieces + 1): the first item of every piece, and how many there are in all."""
    pieces: F64
    """(pieces, 3): start in s, items due at the start, items per second."""

    @classmethod
    def from_levels(cls, levels: Levels, per_level_s: float, duration_s: float) -> Publications:
        """Of a source that publishes ``per_level_s`` items per level unit and second."""
        first, pieces, due = [0], [], 0.0
        for start_s, end_s, level in levels.pieces(duration_s):
            rate = level * per_level_s
            pieces.append((start_s, due, rate))
            # Rounded so that 124.99999999 does not publish what 125 would not.
            due = round(due + (end_s - start_s) * rate, 9)
            first.append(int(np.ceil(due)))
        return cls(np.array(first, dtype=np.int64), np.array(pieces).reshape(-1, 3))

    def times_us(self, first: int, last: int) -> I64:
        """Times of items ``first`` to ``last - 1``; NEVER after the last one."""
        times_us = np.full(last - first, NEVER, dtype=np.int64)
        piece = int(np.searchsorted(self.first, first, side="right")) - 1
        number = first
        while number < last and piece < len(self.pieces):
            end = min(last, int(self.first[piece + 1]))
            if number < end:
                start_s, due, rate = self.pieces[piece].tolist()
                times_s = start_s + (np.arange(number, end) - due) / rate
                times_us[number - first : end - first] = np.rint(times_s * 1e6)
                number = end
            piece += 1
        return times_us


@dataclass(frozen=True, slots=True)
class RandomPublications:
    """Items of a source whose gaps are gamma distributed, by the integral of the rate: exponential
    gaps, ``cv`` 1, make the items of each piece a Poisson process. Stores all times."""

    all_us: I64

    @classmethod
    def from_levels(
        cls,
        levels: Levels,
        per_level_s: float,
        duration_s: float,
        cv: float,
        generator: np.random.Generator,
    ) -> RandomPublications:
        """As :meth:`Publications.from_levels`, with ``cv`` above 0."""
        pieces = np.array(list(levels.pieces(duration_s))).reshape(-1, 3)
        starts_s, ends_s, rates = pieces[:, 0], pieces[:, 1], pieces[:, 2] * per_level_s
        due = np.concatenate([[0.0], np.cumsum((ends_s - starts_s) * rates)])
        blocks, reached = [np.zeros(0)], 0.0
        while reached < due[-1]:
            gaps = generator.standard_gamma(1 / cv**2, BLOCK) * cv**2
            blocks.append(reached + np.cumsum(gaps))
            reached = float(blocks[-1][-1])
        at = np.concatenate(blocks)
        at = at[at < due[-1]]
        piece = np.searchsorted(due[:-1], at, side="right") - 1
        times_s = starts_s[piece] + (at - due[piece]) / rates[piece]
        return cls(np.rint(times_s * 1e6).astype(np.int64))

    def times_us(self, first: int, last: int) -> I64:
        """As :meth:`Publications.times_us`."""
        times_us = np.full(last - first, NEVER, dtype=np.int64)
        times_us[: max(0, len(self.all_us) - first)] = self.all_us[first:last]
        return times_us
