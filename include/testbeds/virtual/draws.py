"""Random numbers as data: draw ``i`` of a stream depends on seed, purpose, name and ``i`` only.

Every block of a stream has its own generator, so that draws do not depend on time, process or
snapshots. Times are whole microseconds, which also hides last-bit differences of mathematical
libraries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Draws:
    """The streams of a run."""

    seed: int

    def generator(self, purpose: str, name: str, block: int = 0) -> np.random.Generator:
        key = hashlib.blake2b(f"{purpose}/{name}".encode(), digest_size=8).digest()
        words = (self.seed, int.from_bytes(key, "big"), block)
        return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(words)))

    def between_us(self, purpose: str, name: str, bounds_s: tuple[float, float]) -> int:
        """A uniformly distributed time."""
        low_s, high_s = bounds_s
        share = float(self.generator(purpose, name).random())
        return round((low_s + share * (high_s - low_s)) * 1e6)

    def chance(self, purpose: str, name: str, probability: float) -> bool:
        return probability > 0 and bool(self.generator(purpose, name).random() < probability)

    def after_us(self, purpose: str, name: str, per_hour: float) -> int | None:
        """Exponential time until the first event at rate ``per_hour``; None for rate 0."""
        if per_hour <= 0:
            return None
        return round(float(self.generator(purpose, name).standard_exponential()) * 3.6e9 / per_hour)

    def periods(
        self, purpose: str, name: str, per_hour: float, length_s: tuple[float, float], end_us: int
    ) -> Iterator[tuple[int, int]]:
        """Disjoint Poisson periods that begin before ``end_us``: (from, to), in order."""
        if per_hour <= 0:
            return
        generator, at_us = self.generator(purpose, name), 0.0
        while True:
            at_us += float(generator.standard_exponential()) * 3.6e9 / per_hour
            length_us = generator.uniform(*length_s) * 1e6
            if at_us >= end_us:
                break
            yield round(at_us), round(at_us + length_us)
            at_us += length_us
