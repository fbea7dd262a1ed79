"""Replay of a user's own trace: CSV or Parquet with a time and a level or a rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from include.model.errors import SpecError
from include.workloads.pattern import Levels
from include.workloads.trace_files import TraceLoad, read_load

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Trace:
    """``path`` has the columns ``time_s`` and ``level``, times ascending from 0.

    Levels are in level units of the topology. ``rate_items_per_s`` instead of ``level`` is the
    rate over all sources, which ``items_per_level_s`` of the topology (filled in by the spec) turns
    into a level. ``scale`` multiplies the level; or ``highest_level`` becomes the highest level of
    the replayed day. ``speedup`` replays faster.

    Other recordings are read by `recordings`: ``map`` gives the columns of time and rate, and
    their units. ``step_s`` takes means over equal steps, ``gaps`` fills absent values, and with
    ``days_as_seeds`` seed 3 replays the third day.
    """

    path: str = field(metadata={"is": "a CSV or Parquet file with time_s and level"})
    scale: float = 1.0
    highest_level: float | None = None
    speedup: float = 1.0
    items_per_level_s: float = 1.0
    map: str | Mapping[str, str] = ""
    step_s: float | None = None
    gaps: Literal["refuse", "hold", "zero"] = "refuse"
    days_as_seeds: bool = False

    def problems(self) -> Iterator[str]:
        """Everything wrong with the file and the options, by reading the file."""
        if not 0 < self.scale < math.inf:
            yield f"scale must be above 0, got {self.scale:g}"
        if self.highest_level is not None:
            if not 0 < self.highest_level < math.inf:
                yield f"highest_level must be above 0, got {self.highest_level:g}"
            if self.scale != 1:
                yield "scale and highest_level both say how high the level is; give one of them"
        if not 0 < self.items_per_level_s < math.inf:
            yield f"items_per_level_s must be above 0, got {self.items_per_level_s:g}"
        if not 0 < self.speedup < math.inf:
            yield f"speedup must be above 0, got {self.speedup:g}"
        try:
            load = self._load()
        except SpecError as error:
            yield from error.problems
            return
        yield from load.problems()

    def seed_problems(self, seed: int) -> Iterator[str]:
        """Problems of a seed that selects a day, unless the file has other problems."""
        try:
            load = self._load()
        except SpecError:
            return
        if self.days_as_seeds and not any(load.problems()):
            yield from self._day_problems(load, seed)

    def notes(self) -> tuple[str, ...]:
        """Changes made to the file's values. Raises SpecError."""
        return self._load().notes

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """The trace, or a day of it; its last level holds to the end of the run."""
        load = self._load()
        problems = list(load.problems())
        if self.days_as_seeds and not problems:
            problems = list(self._day_problems(load, seed))
        if problems:
            raise SpecError("trace", problems)
        if self.days_as_seeds:
            load = load.of_day(seed, DAY_S)
        levels = load.values
        if load.is_rate:
            levels = [rate / self.items_per_level_s for rate in levels]
        scale = self.scale if self.highest_level is None else self.highest_level / max(levels)
        times_s = [t_s / self.speedup for t_s in load.times_s]
        steps = [i for i, t_s in enumerate(times_s) if t_s < duration_s]
        return Levels(tuple(times_s[i] for i in steps), tuple(levels[i] * scale for i in steps))

    def _load(self) -> TraceLoad:
        mapping = self.map if isinstance(self.map, str) else tuple(sorted(self.map.items()))
        return read_load(self.path, mapping, self.step_s, self.gaps)

    def _day_problems(self, load: TraceLoad, seed: int) -> Iterator[str]:
        days = 1 + int(load.times_s[-1] // DAY_S)
        if not 1 <= seed <= days:
            yield f"{self.path} has no day {seed}: it has {days}; take seeds from 1 to {days}"
        elif not any(value > 0 for value in load.of_day(seed, DAY_S).values):
            yield f"{self.path}: nothing arrives on day {seed}; take another seed"
