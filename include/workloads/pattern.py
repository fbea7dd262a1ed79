"""Protocol of arrival patterns: the number of level units (machines) over time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf
from typing import Protocol

LEAST_HOLD_S = 0.1
"""No level of a pattern is shorter."""


@dataclass(frozen=True, slots=True)
class Levels:
    """A piecewise constant level: ``levels[i]`` holds from ``starts_s[i]`` to the next start."""

    starts_s: tuple[float, ...]
    levels: tuple[float, ...]

    def at(self, t_s: float) -> float:
        """The level at ``t_s``; 0 before the first start."""
        i = bisect_right(self.starts_s, t_s) - 1
        return self.levels[i] if i >= 0 else 0.0

    def peak(self, end_s: float = inf) -> float:
        """The highest level before ``end_s``; 0 where there is none."""
        return max((level for *_, level in self.pieces(end_s)), default=0.0)

    def pieces(self, end_s: float) -> Iterator[tuple[float, float, float]]:
        """(start_s, end_s, level) of every piece before ``end_s``."""
        ends_s = (*self.starts_s[1:], end_s)
        for start_s, stop_s, level in zip(self.starts_s, ends_s, self.levels, strict=True):
            if start_s < end_s:
                yield start_s, min(stop_s, end_s), level


def product(left: Levels, right: Levels) -> Levels:
    """The product of two levels at every time."""
    starts_s = tuple(sorted({*left.starts_s, *right.starts_s}))
    return Levels(starts_s, tuple(left.at(t_s) * right.at(t_s) for t_s in starts_s))


class Pattern(Protocol):
    """A frozen dataclass of options that unfolds into levels, the same for the same seed."""

    def problems(self) -> Iterator[str]:
        """Everything wrong with the options."""
        ...

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """Levels from 0 to ``duration_s``. Raises SpecError if a trace cannot be read."""
        ...


def steps_in(duration_s: float, hold_s: float) -> int:
    """How many steps fill the time, the last one in part."""
    return max(1, ceil(duration_s / hold_s - 1e-9))


def held(levels: list[float], hold_s: float, duration_s: float) -> Levels:
    """The levels in turn, each for ``hold_s``, repeated until ``duration_s``."""
    steps = steps_in(duration_s, hold_s)
    return Levels(
        tuple(i * hold_s for i in range(steps)),
        tuple(float(levels[i % len(levels)]) for i in range(steps)),
    )


def level_problems(levels: tuple[float, ...], hold_s: float) -> Iterator[str]:
    """What can be wrong with a list of levels."""
    if not levels:
        yield "levels is empty; give at least one level"
    elif min(levels) < 0:
        yield f"levels must not be negative, got {min(levels):g}"
    elif max(levels) == 0:
        yield "all levels are 0, so nothing would ever arrive; give at least one above 0"
    yield from hold_problems(hold_s)


def hold_problems(hold_s: float, name: str = "hold_s", levels: int = 1) -> Iterator[str]:
    """Why a time of so many levels cannot be."""
    if hold_s < (least_s := levels * LEAST_HOLD_S):
        why = "the levels of two weeks have to fit into memory"
        yield f"{name} must be at least {least_s:g} s ({why}), got {hold_s:g}"


@dataclass(frozen=True, slots=True)
class Constant:
    """The same level from the first to the last second."""

    level: float = 4

    def problems(self) -> Iterator[str]:
        yield from level_problems((self.level,), 1.0)

    def unfold(self, duration_s: float, seed: int) -> Levels:
        return Levels((0.0,), (float(self.level),))
